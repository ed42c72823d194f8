// A small agent host in Node: two tools, one that answers at once and one that takes its time.
//
//   cargo build --release && cd examples/node && npm install && node agent.mjs [script.py]
//
// Where an agent would ask its model for a script, this one has it in a string. Ctrl-C cancels.
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Engine } from './ptc.mjs';

const one = (name) => ({ type: 'object', properties: { [name]: { type: 'string' } }, required: [name] });

export const tools = {
  word_count: {
    description: 'Counts the words of a text.',
    inputSchema: one('text'),
    call: ({ text }) => text.split(/\s+/).filter(Boolean).length,
  },
  fetch_page: {
    description: 'The text of a page.',
    inputSchema: one('url'),
    async call({ url }, { signal }) {
      await sleep(20, undefined, { signal }); // the network
      if (url.includes('missing')) throw new Error(`404: there is no page ${url}`);
      return `The page of ${url} says hello to everybody.`;
    },
  },
};

export const script = `
from hermes_tools import fetch_page, word_count, parallel
urls = ["https://example.org/one", "https://example.org/two", "https://example.org/three"]
pages = parallel(fetch_page, urls)
for url, page in zip(urls, pages):
    print(url, word_count(page), "words")
`;

async function main() {
  const code = process.argv[2] ? readFileSync(process.argv[2]) : script;
  const engine = new Engine({ tools });
  const interrupt = new AbortController();
  process.once('SIGINT', () => interrupt.abort());
  try {
    const result = await engine.execute(code, { signal: interrupt.signal });
    console.log(result.output);
    process.exitCode = result.status === 'success' ? 0 : 1;
  } finally {
    await engine.close();
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
