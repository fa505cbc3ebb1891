// A stand-in for OpenCode 2.x, as far as our plugin touches it. No 2.x program was available when this was written: it
// follows the published plugin API (setup(ctx), ctx.tool.transform, ctx.session.hook, ctx.event.subscribe,
// ctx.generate.text), so a test that passes here says that the plugin keeps to that API, not that a real 2.x behaves
// like this.
//
//   node opencode2_host.js PLUGIN.js DIRECTORY [--limited | --without-compaction]
//
// Reads commands as JSON lines from stdin and answers each with one JSON line. With --limited, `ctx` has what the host
// embedded in 1.x offers: no sessions, no tools, no events. With --without-compaction there is no hook of that name.

import { createInterface } from "node:readline"
import { pathToFileURL } from "node:url"

const [file, directory, mode] = process.argv.slice(2)
const sessions = new Map() // id -> {id, parentID?, title?}
const tools = new Map()
const hooks = { prompt: [], context: [], ...(mode === "--without-compaction" ? {} : { compaction: [] }) }
const listeners = new Set()
let disposed = 0
const registration = () => ({ dispose: async () => void disposed++ })

async function* subscribe({ signal }) {
  const queue = []
  let wake = () => {}
  const listener = (event) => (queue.push(event), wake())
  listeners.add(listener)
  signal.addEventListener("abort", () => wake())
  while (!signal.aborted) {
    while (queue.length) yield queue.shift()
    await new Promise((resolve) => (wake = resolve))
  }
  listeners.delete(listener)
}

const ctx = {
  options: {},
  location: { directory, project: { id: "project-2", directory, canonical: directory } },
  session: {
    hook: async (name, callback) => (hooks[name].push(callback), registration()),
    get: async ({ sessionID }) => {
      if (!sessions.has(sessionID)) throw new Error("no such session")
      return sessions.get(sessionID)
    },
  },
  tool: { transform: async (change) => (change({ add: (tool) => tools.set(tool.name, tool) }), registration()) },
  event: { subscribe },
  generate: {
    text: async ({ prompt, model }) => {
      if (prompt.includes("fail")) throw new Error("words of the server")
      return { text: `${model?.providerID ?? "default"}:${model?.id ?? ""} answers ${prompt}` }
    },
  },
}

const freeze = (value) => {
  if (value && typeof value === "object") Object.values(value).forEach(freeze)
  return Object.freeze(value)
}

async function run(name, event) {
  for (const hook of hooks[name]) await hook(event)
  return event
}

// The messages belong to the host's own history: whoever changes one of them in place fails here.
function requested(event) {
  return { agent: "build", options: {}, tools: {}, ...event, messages: event.messages.map((it) => freeze(new Message(it))) }
}

class Message {
  constructor(fields) {
    Object.assign(this, fields)
  }
}

const plugin = (await import(pathToFileURL(file))).default
let cleanup = await plugin.setup(mode === "--limited" ? { options: {}, agent: {}, skill: {} } : ctx)

const commands = {
  state: () => ({
    id: plugin.id, cleanup: typeof cleanup, tools: [...tools.values()],
    hooks: Object.keys(hooks).filter((name) => hooks[name].length),
  }),
  session: (info) => void sessions.set(info.id, info),
  prompt: (event) => run("prompt", { metadata: {}, delivery: "immediate", ...event }),
  context: async (event) => {
    const answer = await run("context", requested(event))
    return { ...answer, whole: answer.messages.every((message) => message instanceof Message) }
  },
  compaction: (event) => run("compaction", requested({ kind: "compaction", ...event })),
  tool: ({ name, input, context }) =>
    tools.get(name).execute(input, { signal: new AbortController().signal, ...context }),
  event: (event) => listeners.forEach((listener) => listener(event)),
  again: async () => ({ cleanup: typeof (await plugin.setup(ctx)) }),
  cleanup: async () => (await cleanup(), { disposed, listeners: listeners.size }),
}

for await (const line of createInterface({ input: process.stdin })) {
  const { command, ...argument } = JSON.parse(line)
  const result = await commands[command](argument)
  process.stdout.write(JSON.stringify(result ?? null) + "\n")
}
process.exit(0)
