// A small agent host in Go: two tools, one that answers at once and one that takes its time.
//
//	cargo build --release && cd examples/go && go run . [script.py]
//
// Where an agent would ask its model for a script, this one has it in a string. Ctrl-C cancels.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"ptc.example/agent/ptc"
)

const script = `
from hermes_tools import fetch_page, word_count, parallel
urls = ["https://example.org/one", "https://example.org/two", "https://example.org/three"]
pages = parallel(fetch_page, urls)
for url, page in zip(urls, pages):
    print(url, word_count(page), "words")
`

func schema(argument string) json.RawMessage {
	return json.RawMessage(`{"type": "object", "properties": {"` + argument + `": {"type": "string"}}, "required": ["` + argument + `"]}`)
}

var wordCount = ptc.Tool{
	Name:        "word_count",
	Description: "Counts the words of a text.",
	InputSchema: schema("text"),
	Call: func(_ context.Context, args json.RawMessage) (any, error) {
		var given struct{ Text string }
		if err := json.Unmarshal(args, &given); err != nil {
			return nil, err
		}
		return len(strings.Fields(given.Text)), nil
	},
}

var fetchPage = ptc.Tool{
	Name:        "fetch_page",
	Description: "The text of a page.",
	InputSchema: schema("url"),
	Call: func(ctx context.Context, args json.RawMessage) (any, error) {
		var given struct{ URL string }
		if err := json.Unmarshal(args, &given); err != nil {
			return nil, err
		}
		select {
		case <-time.After(20 * time.Millisecond): // the network
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if strings.Contains(given.URL, "missing") {
			return nil, fmt.Errorf("404: there is no page %s", given.URL)
		}
		return "The page of " + given.URL + " says hello to everybody.", nil
	},
}

func main() {
	code := script
	if len(os.Args) > 1 {
		text, err := os.ReadFile(os.Args[1])
		if err != nil {
			fmt.Fprintln(os.Stderr, "agent:", err)
			os.Exit(2)
		}
		code = string(text)
	}
	engine, err := ptc.New(nil, wordCount, fetchPage)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	defer engine.Close()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	result, err := engine.Execute(ctx, code, nil, nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	fmt.Println(result.Output)
	if result.Status != ptc.Success {
		os.Exit(1)
	}
}
