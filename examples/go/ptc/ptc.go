// Package ptc lets a Go agent run a model's Python script that calls the agent's tools.
//
// Calls are pulled, not pushed: no callback enters Go, and each tool call is served by a goroutine of its own. Contexts
// cancel runs, tools return Go values, and a panic in a tool becomes a failed call.
package ptc

/*
#cgo CFLAGS: -I${SRCDIR}/../../../include
#cgo LDFLAGS: -L${SRCDIR}/../../../target/release -lptc -Wl,-rpath,${SRCDIR}/../../../target/release
#include <stdlib.h>
#include "ptc.h"

// An empty host: everything is pulled.
static ptc_error *new_engine(const char *config, size_t len, ptc_engine **out) {
	ptc_host host = {0};
	host.struct_size = sizeof host;
	return ptc_engine_new(config, len, &host, out);
}
*/
import "C"

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"unsafe"
)

// Error is what the library reports: a code of ptc.h and a message that says what to do.
type Error struct {
	Code    int
	Message string
}

func (e *Error) Error() string { return "ptc: " + e.Message }

// Tool is a function that scripts can call.
type Tool struct {
	Name         string          `json:"name"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"input_schema"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`

	// Call gets the arguments as a JSON object. Its context ends with the run. The result is sent as JSON; an error
	// reaches the script as a failed call.
	Call func(ctx context.Context, args json.RawMessage) (any, error) `json:"-"`
}

// Status tells how a run ended.
type Status string

const (
	Success     Status = "success"
	Failed      Status = "error"
	Timeout     Status = "timeout"
	Interrupted Status = "interrupted"
)

// Result is how a run ended. Raw is the whole of it, with keys that have no field here.
type Result struct {
	Status        Status          `json:"status"`
	Output        string          `json:"output"`
	Error         string          `json:"error"`
	Hint          string          `json:"hint"`
	ToolCallsMade int             `json:"tool_calls_made"`
	Seconds       float64         `json:"duration_seconds"`
	Raw           json.RawMessage `json:"-"`
}

// Engine runs scripts. It may be used by any number of goroutines.
type Engine struct {
	handle *C.ptc_engine
	tools  map[string]Tool
}

// New makes an engine from a configuration (nil: all defaults) and tools.
func New(config map[string]any, tools ...Tool) (*Engine, error) {
	whole := map[string]any{}
	for key, value := range config {
		whole[key] = value
	}
	whole["tools"] = tools
	text, err := json.Marshal(whole)
	if err != nil {
		return nil, err
	}
	engine := &Engine{tools: map[string]Tool{}}
	for _, tool := range tools {
		engine.tools[tool.Name] = tool
	}
	data, length := pointer(text)
	failed := C.new_engine(data, length, &engine.handle)
	runtime.KeepAlive(text)
	return engine, take(failed)
}

// Close cancels what runs and releases the engine, which must not be used any more.
func (e *Engine) Close() {
	C.ptc_engine_free(e.handle)
	e.handle = nil
}

// Definition is the execute_code tool to show the model, in the format "anthropic", "openai", "mcp" or "text".
func (e *Engine) Definition(format string) (string, error) {
	name := C.CString(format)
	defer C.free(unsafe.Pointer(name))
	var text *C.char
	var length C.size_t
	if err := take(C.ptc_engine_definition(e.handle, name, &text, &length)); err != nil {
		return "", err
	}
	defer C.ptc_string_free(text)
	return C.GoStringN(text, C.int(length)), nil
}

// Execute runs code to its end. When ctx ends first the run is cancelled, and its result says so. Options are those of
// a run (nil: none); output (nil: nobody) gets what the script prints, as it comes.
func (e *Engine) Execute(ctx context.Context, code string, options map[string]any, output func([]byte)) (*Result, error) {
	text := []byte{}
	if options != nil {
		var err error
		if text, err = json.Marshal(options); err != nil {
			return nil, err
		}
	}
	source := []byte(code)
	data, length := pointer(source)
	optionsData, optionsLength := pointer(text)
	var run *C.ptc_run
	failed := C.ptc_run_start(e.handle, data, length, optionsData, optionsLength, nil, &run)
	runtime.KeepAlive(source)
	runtime.KeepAlive(text)
	if err := take(failed); err != nil {
		return nil, err
	}
	defer C.ptc_run_free(run)
	return e.serve(ctx, run, output)
}

// serve pulls events until the run has ended. Go gives the blocking call a thread of its own.
func (e *Engine) serve(ctx context.Context, run *C.ptc_run, output func([]byte)) (*Result, error) {
	ctx, cancelTools := context.WithCancel(ctx)
	var serving sync.WaitGroup
	defer serving.Wait()
	defer cancelTools()
	stop := context.AfterFunc(ctx, func() { C.ptc_run_cancel(run, nil, 0) })
	defer stop()
	for {
		var event *C.ptc_event
		if err := take(C.ptc_run_next_event(run, -1, &event)); err != nil {
			return nil, err
		}
		if event == nil {
			break // the last event was given out
		}
		switch C.ptc_event_kind(event) {
		case C.PTC_EVENT_CALL:
			call := C.ptc_event_call(event)
			var length C.size_t
			args := C.ptc_call_args(call, &length)
			id, tool := C.ptc_call_id(call), C.GoString(C.ptc_call_tool(call, nil))
			json := C.GoBytes(unsafe.Pointer(args), C.int(length))
			serving.Add(1)
			go func() {
				defer serving.Done()
				e.answer(ctx, id, tool, json)
			}()
		case C.PTC_EVENT_STDOUT:
			if output != nil {
				var length C.size_t
				data := C.ptc_event_data(event, &length)
				output(C.GoBytes(unsafe.Pointer(data), C.int(length)))
			}
		}
		C.ptc_event_free(event)
	}
	return wait(run)
}

func wait(run *C.ptc_run) (*Result, error) {
	var handle *C.ptc_result
	if err := take(C.ptc_run_wait(run, -1, &handle)); err != nil {
		return nil, err
	}
	defer C.ptc_result_free(handle)
	var length C.size_t
	text := C.ptc_result_json(handle, &length)
	result := &Result{Raw: C.GoBytes(unsafe.Pointer(text), C.int(length))}
	return result, json.Unmarshal(result.Raw, result)
}

// answer runs a tool and sends what came of it. That the run has ended meanwhile is no error.
func (e *Engine) answer(ctx context.Context, id C.uint64_t, tool string, args json.RawMessage) {
	result, err := call(ctx, e.tools[tool], args)
	var text []byte
	if err == nil {
		text, err = json.Marshal(result)
	}
	if err != nil {
		text = []byte(err.Error())
		data, length := pointer(text)
		take(C.ptc_call_fail(id, data, length))
	} else {
		data, length := pointer(text)
		take(C.ptc_call_reply(id, data, length))
	}
	runtime.KeepAlive(text)
}

func call(ctx context.Context, tool Tool, args json.RawMessage) (result any, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("%s panicked: %v", tool.Name, panicked)
		}
	}()
	if tool.Call == nil {
		return nil, errors.New("this tool is not served")
	}
	return tool.Call(ctx, args)
}

// take turns an error object into an error and frees it.
func take(failed *C.ptc_error) error {
	if failed == nil {
		return nil
	}
	defer C.ptc_error_free(failed)
	return &Error{int(C.ptc_error_code(failed)), C.GoString(C.ptc_error_message(failed, nil))}
}

// pointer is how text goes in: the library copies it before the call returns.
func pointer(text []byte) (*C.char, C.size_t) {
	return (*C.char)(unsafe.Pointer(unsafe.SliceData(text))), C.size_t(len(text))
}
