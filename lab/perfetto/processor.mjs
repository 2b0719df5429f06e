// SPDX-License-Identifier: GPL-2.0-or-later
//
// Perfetto's trace processor, which is made for a browser's worker, in node:
//
//     node processor.mjs ASSETS TRACE <queries.json
//
// Loads TRACE as ui.perfetto.dev would, runs the SQL queries of a JSON list and
// prints a JSON list with, for each, its rows as objects. Exit status 1 with the
// processor's own words when it refuses the trace or a query.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { runInThisContext } from "node:vm";
import { MessageChannel } from "node:worker_threads";

const PIECE = 16 << 20;

/** Run the processor's code, with what it expects around it. */
async function worker(assets) {
  const { Module } = WebAssembly;
  // The package has the 32-bit build only. A module that begins with a 64-bit
  // memory is the question whether there is such a thing; the answer is no.
  WebAssembly.Module = function (bytes) {
    if (bytes[8] === 5 && bytes[11] & 4) throw new WebAssembly.CompileError("32 bits only");
    return new Module(bytes);
  };
  const set = (name, value) =>
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true });
  set("self", globalThis);
  set("WorkerGlobalScope", class {});
  set("location", { href: "worker:///engine.js" });
  set("XMLHttpRequest", class {
    open(_method, name) {
      this.response = readFileSync(join(assets, name));
    }
    send() {}
  });
  // Its standard output is ours.
  console.log = console.warn = console.error;
  const glue = join(assets, "engine_bundle.node.js");
  runInThisContext(readFileSync(glue, "utf8"), { filename: glue });
  // The last of its initialisation waits for promises that are kept already.
  await new Promise(setImmediate);
}

async function open(assets) {
  await worker(assets);
  const { EngineBase } = await import(pathToFileURL(join(assets, "engine.mjs")));
  const { port1, port2 } = new MessageChannel();
  class Engine extends EngineBase {
    mode = "WASM";
    id = "node";
    rpcSendRequestBytes(bytes) {
      port1.postMessage(bytes);
    }
    [Symbol.dispose ?? Symbol("dispose")]() {
      port1.close();
    }
  }
  const engine = new Engine();
  port1.on("message", (bytes) => engine.onRpcResponseBytes(bytes));
  globalThis.onmessage({ data: port2 });
  return [engine, () => port1.close()];
}

/** A value as JSON can hold it: what is no exact number there is text. */
function plain(value) {
  if (typeof value !== "bigint") return value;
  return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
}

async function main([assets, path]) {
  const queries = JSON.parse(readFileSync(0, "utf8"));
  const [engine, close] = await open(assets);
  const trace = new Uint8Array(readFileSync(path));
  for (let at = 0; at < trace.length; at += PIECE)
    await engine.parse(trace.subarray(at, at + PIECE));
  await engine.notifyEof();
  const answers = [];
  for (const query of queries) {
    const result = await engine.query(query);
    const columns = result.columns();
    const rows = [];
    for (const row = result.iter({}); row.valid(); row.next())
      rows.push(Object.fromEntries(columns.map((c) => [c, plain(row.get(c))])));
    answers.push(rows);
  }
  close();
  process.stdout.write(JSON.stringify(answers) + "\n");
}

const fail = (error) => {
  console.error(`perfetto: ${error?.message ?? error}`);
  process.exit(1);
};
process.on("uncaughtException", fail);
process.on("unhandledRejection", fail);
await main(process.argv.slice(2));
