package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"ptc.example/agent/ptc"
)

func engine(t *testing.T, further ...ptc.Tool) *ptc.Engine {
	t.Helper()
	engine, err := ptc.New(nil, append([]ptc.Tool{wordCount, fetchPage}, further...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(engine.Close)
	return engine
}

func execute(t *testing.T, engine *ptc.Engine, code string, options map[string]any) *ptc.Result {
	t.Helper()
	result, err := engine.Execute(context.Background(), code, options, nil)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func TestSuccess(t *testing.T) {
	result := execute(t, engine(t), script, nil)
	if result.Status != ptc.Success || !strings.HasSuffix(result.Output, "https://example.org/three 8 words\n") {
		t.Fatalf("%s", result.Raw)
	}
	if result.ToolCallsMade != 6 {
		t.Fatalf("%d calls", result.ToolCallsMade)
	}
}

func TestToolThatFails(t *testing.T) {
	panics := ptc.Tool{
		Name:        "panics",
		InputSchema: json.RawMessage(`{"type": "object", "properties": {}}`),
		Call:        func(context.Context, json.RawMessage) (any, error) { panic("on purpose") },
	}
	code := "from hermes_tools import fetch_page, panics\nprint(fetch_page('missing'))\nprint(panics())\n"
	result := execute(t, engine(t, panics), code, nil)
	expected := "{'error': '404: there is no page missing'}\n{'error': 'panics panicked: on purpose'}\n"
	if result.Output != expected {
		t.Fatalf("%s", result.Raw)
	}
}

func TestTimeout(t *testing.T) {
	result := execute(t, engine(t), "print('begun')\nimport time\ntime.sleep(1000)\n", map[string]any{"timeout": 3})
	if result.Status != ptc.Timeout || result.Output != "begun\nScript timed out after 3s and was killed." {
		t.Fatalf("%s", result.Raw)
	}
}

func TestCancellation(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	code := "print('ready')\nimport time\ntime.sleep(1000)\n"
	result, err := engine(t).Execute(ctx, code, nil, func([]byte) { cancel() })
	if err != nil {
		t.Fatal(err)
	}
	if result.Status != ptc.Interrupted || result.Output != "ready\n[execution interrupted - user sent a new message]" {
		t.Fatalf("%s", result.Raw)
	}
}

func TestCancellationReachesTools(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	waits := ptc.Tool{
		Name:        "waits",
		InputSchema: json.RawMessage(`{"type": "object", "properties": {}}`),
		Call: func(ctx context.Context, _ json.RawMessage) (any, error) {
			cancel()
			<-ctx.Done()
			ended <- ctx.Err()
			return nil, ctx.Err()
		},
	}
	result, err := engine(t, waits).Execute(ctx, "from hermes_tools import waits\nwaits()", nil, nil)
	if err != nil || result.Status != ptc.Interrupted {
		t.Fatalf("%v %v", result, err)
	}
	if <-ended == nil {
		t.Fatal("the tool was not told")
	}
}

func TestManyAtOnce(t *testing.T) {
	engine := engine(t)
	var all sync.WaitGroup
	for i := 0; i < 16; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			result, err := engine.Execute(context.Background(), script, nil, nil)
			if err != nil || result.Status != ptc.Success {
				t.Errorf("%v %v", result, err)
			}
		}()
	}
	all.Wait()
}

func TestErrorsNameTheirPlace(t *testing.T) {
	_, err := ptc.New(map[string]any{"code_execution": map[string]any{"timeout": "5m"}})
	if err == nil || !strings.Contains(err.Error(), "code_execution.timeout") {
		t.Fatal(err)
	}
	_, err = engine(t).Execute(context.Background(), "print(1)", map[string]any{"mode": "loose"}, nil)
	if err == nil || !strings.Contains(err.Error(), "mode") {
		t.Fatal(err)
	}
}

func TestDefinition(t *testing.T) {
	text, err := engine(t).Definition("anthropic")
	if err != nil || !json.Valid([]byte(text)) || !strings.Contains(text, "word_count") {
		t.Fatal(text, err)
	}
}

func TestNothingIsLeft(t *testing.T) {
	engine := engine(t)
	execute(t, engine, "pass", nil)
	before := descriptors(t)
	for i := 0; i < 20; i++ {
		execute(t, engine, "pass", nil)
	}
	if after := descriptors(t); after > before+2 {
		t.Fatalf("%d descriptors before, %d after", before, after)
	}
}

func descriptors(t *testing.T) int {
	found, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("only Linux shows them")
	}
	return len(found)
}
