// What OpenCode loads for Backstory, version 1.x (`server`) and 2.x (`setup`). It carries messages between OpenCode's
// hooks and one Python process, and decides nothing: what is remembered, recalled and said is decided in Python.
//
// Beside this file lies `backstory.json`, written at install:
//   command       argv of the Python process, e.g. ["/usr/bin/python3", "-m", "backstory", "bridge"]
//   env           variables added to its environment
//   version       of Backstory, reported in `hello`
//   manifest      tools: [{name, description, parameters (JSON schema)}]; registered without waiting for Python
//   deadlines_ms  overrides of DEADLINES_MS below
//   unavailable   what a tool answers when Python does not
// Without a readable sidecar the plugin does nothing at all.
//
// Wire: JSON-RPC 2.0, one object a line, UTF-8, over the child's stdin and stdout; protocol.py has the methods.
// Three rules: no hook throws, no hook waits past its deadline, and without an answer OpenCode goes on as if this
// file were not there. BACKSTORY_PLUGIN_LOG=FILE collects diagnostics and the child's stderr; otherwise nobody does.

const PROTOCOL = 1
const DEADLINES_MS = {
  hello: 5000, "chat.message": 800, blocks: 300, snapshot: 300, history: 300, compacting: 500, tool: 10_000,
  session: 200, // OpenCode's own answer to "what is this session?"
  title: 250, // its request for a session's title to have begun
  start: 2500, // a child that has not said a word yet is given so long from its start: only a process's first prompt waits
  grace: 1000, // from the end of a child's input until it is killed or, where the host ends, no longer waited for
  silence: 30_000, // a child that says nothing for so long, and lets three requests pass, is replaced
}
const BACKOFF_MS = [1000, 5000, 30_000] // before the first, second, every later restart
const STABLE_MS = 60_000 // a child that lived so long starts the back-off anew
const MAX_BUFFER_CHARS = 16 * 1024 * 1024
const MAX_BLOCKS = 2000
const MAX_SESSIONS = 1000
const MAX_HISTORIES = 200
const SMALL_ADDRESS_CHARS = 1024
const MAX_FAILURES = 3
const MAX_GENERATE_MS = 600_000
const MAX_CLEAN_UP_MS = 2000
const HELPER = "backstory-helper" // names the agent that answers in the sessions in which we ask the model
const HELPER_TITLE = /^backstory-helper [a-z0-9_]{1,40} [0-9a-f]{32}$/ // helperTitle makes it, and nobody types it
const UNTITLED = "New session - " // how OpenCode 1.x names a session before the model has
const UNAVAILABLE = "Memory is not available right now. Continue without it."

// ---- State, shared by every instance and every copy of this file in the process ----------------------------------

const directories = (globalThis[Symbol.for("backstory.directories")] ??= new Map()) // directory -> who serves it
const shared = (globalThis[Symbol.for("backstory.bridge.1")] ??= {
  child: null, startedAt: 0, heardAt: 0, rest: "", lastId: 0, waiting: new Map(), unanswered: 0,
  deaths: 0, retryAt: 0, refused: false,
  sidecar: null, instances: new Map(), // directory -> instance
  blocks: new Map(), // user message id -> text shown beside it, "" for none; once set it can only be withheld
  snapshots: new Map(), // session -> {text, failures}; text is undefined until Python has answered
  misses: new Map(), // session -> how often `blocks` went unanswered
  histories: new Map(), // session -> {ids, count, text}: the messages that were replaced last, and by what
  overdue: new Map(), // session -> how often `history` went unanswered since its last prompt
  sessions: new Map(), // session -> {child, parent, untitled, helper, ...}, as keepSession makes it
  titles: new Map(), // session -> true once its request for a title has begun, until then who waits for that
  models: new Map(), // session -> the model of its latest prompt
  helpers: new Map(), // helper session -> its question, as newHelper makes it, while that is under way
  questions: new Map(), // id of a request of Python's -> {directory, stop}
  commands: new Map(), // session -> the command whose prompt comes next: {text, typed}
  compacting: new Set(), // sessions whose next messages.transform is the input of a compaction
})

function keep(map, key, value, limit) {
  map.delete(key)
  map.set(key, value)
  if (map.size > limit) map.delete(map.keys().next().value)
  return value
}

const builtin = (name) => process.getBuiltinModule(name)

function log(text) {
  const file = process.env.BACKSTORY_PLUGIN_LOG
  if (!file) return
  try {
    builtin("node:fs").appendFileSync(file, `${new Date().toISOString()} plugin ${text}\n`)
  } catch {}
}

function readSidecar() {
  try {
    const url = new URL("backstory.json", import.meta.url)
    const sidecar = JSON.parse(builtin("node:fs").readFileSync(url, "utf8"))
    if (!Array.isArray(sidecar.command) || !sidecar.command.every((word) => typeof word === "string" && word)) {
      throw new Error("command is not a list of words")
    }
    return { ...sidecar, folder: builtin("node:url").fileURLToPath(new URL(".", url)) }
  } catch (error) {
    log(`no usable backstory.json: ${error}`)
    return null
  }
}

const deadline = (name) => shared.sidecar?.deadlines_ms?.[name] ?? DEADLINES_MS[name]

// How long a request may take: its deadline, or what is left of the child's time to start.
function patience(method) {
  const starting = shared.heardAt === shared.startedAt
  return starting ? Math.max(deadline(method), deadline("start") - (Date.now() - shared.startedAt)) : deadline(method)
}

// Resolves to undefined when `promise` rejects or takes longer than `ms`.
function within(ms, promise) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    const fail = (error) => (log(`failed: ${error}`), resolve())
    Promise.resolve(promise).then(resolve, fail).finally(() => clearTimeout(timer))
  })
}

// ---- The child process --------------------------------------------------------------------------------------------

function start() {
  if (shared.child) return shared.child
  if (shared.refused || !shared.sidecar || Date.now() < shared.retryAt) return null
  const { command, env, folder } = shared.sidecar
  shared.startedAt = shared.heardAt = Date.now()
  shared.unanswered = 0
  try {
    const file = process.env.BACKSTORY_PLUGIN_LOG
    const stderr = file ? builtin("node:fs").openSync(file, "a") : "ignore"
    // `python -m` imports from its working directory first, and the project's folder is not ours to trust.
    const child = (shared.child = builtin("node:child_process").spawn(command[0], command.slice(1), {
      cwd: folder, env: { ...process.env, PYTHONSAFEPATH: "1", ...env },
      stdio: ["pipe", "pipe", stderr], windowsHide: true,
    }))
    if (file) builtin("node:fs").closeSync(stderr)
    child.on("error", (error) => ended(child, error))
    child.on("exit", (code, signal) => ended(child, `exit ${code ?? signal}`))
    child.stdin?.on("error", (error) => ended(child, error))
    child.stdout?.setEncoding("utf8")
    child.stdout?.on("data", (chunk) => shared.child === child && receive(child, chunk))
    child.unref?.()
  } catch (error) {
    ended(shared.child, error)
  }
  if (shared.child) for (const instance of shared.instances.values()) hello(instance)
  return shared.child
}

// The child is gone or must go: release everyone who waits, and let the next request start another after a pause.
function ended(child, why) {
  if (child !== shared.child) return
  log(`bridge ended: ${why}`)
  shared.child = null
  shared.rest = ""
  if (Date.now() - shared.startedAt > STABLE_MS) shared.deaths = 0
  shared.retryAt = Date.now() + BACKOFF_MS[Math.min(shared.deaths++, BACKOFF_MS.length - 1)]
  for (const settle of [...shared.waiting.values()]) settle()
  for (const { stop } of shared.questions.values()) stop.abort()
  if (child) finish(child)
}

// End of input first, so that Python can close its store; then the hard way. Where the host itself ends, a slow child is
// left to itself: nothing else waits for it, and what the user asked it to keep may not have reached the store yet.
function finish(child, { kill = true } = {}) {
  return new Promise((resolve) => {
    if (!child.pid || child.exitCode !== null || child.signalCode !== null) return resolve()
    const timer = setTimeout(() => (kill && child.kill("SIGKILL"), resolve()), deadline("grace"))
    child.once("exit", () => (clearTimeout(timer), resolve()))
    try {
      child.stdin.end()
    } catch {}
  })
}

function send(message, replacer) {
  const child = shared.child
  if (!child?.stdin || child.stdin.destroyed) return false
  if ((child.unread ?? 0) > MAX_BUFFER_CHARS) return log("dropped a message: the bridge does not read"), false
  try {
    const line = JSON.stringify({ jsonrpc: "2.0", ...message }, replacer) + "\n"
    child.unread = (child.unread ?? 0) + line.length // counted here, since Bun reports a writableLength of 0
    child.stdin.write(line, () => (child.unread -= line.length))
    return true
  } catch (error) {
    return log(`cannot send: ${error}`), false
  }
}

// The result, or undefined: no process, no answer in time, an error, or a cancelled tool call. Never rejects.
function request(method, params, signal) {
  return new Promise((resolve) => {
    if (!start()) return resolve()
    const id = ++shared.lastId
    const settle = (answer) => {
      clearTimeout(timer)
      signal?.removeEventListener("abort", abandon)
      shared.waiting.delete(id)
      if (answer?.error) log(`${method}: ${answer.error.message}`)
      resolve(answer?.error ? undefined : answer?.result)
    }
    const abandon = () => settle()
    const timer = setTimeout(() => {
      log(`${method}: no answer`)
      settle()
      const silent = Date.now() - shared.heardAt > deadline("silence")
      if (++shared.unanswered >= MAX_FAILURES && silent) ended(shared.child, "it does not answer")
    }, patience(method))
    shared.waiting.set(id, settle)
    signal?.addEventListener("abort", abandon)
    if (!send({ id, method, params })) settle()
  })
}

function notify(method, params, replacer) {
  if (start()) send({ method, params }, replacer)
}

function receive(child, chunk) {
  const lines = chunk.split("\n")
  lines[0] = shared.rest + lines[0]
  shared.rest = lines.pop()
  if (shared.rest.length > MAX_BUFFER_CHARS) return ended(child, "a line is too long")
  for (const line of lines) {
    if (!line.trim()) continue
    try {
      const message = JSON.parse(line)
      shared.heardAt = Date.now()
      shared.unanswered = 0
      if ((message.result?.protocol ?? PROTOCOL) !== PROTOCOL) { // the answer to `hello`; nothing after it counts
        shared.refused = true
        return ended(child, `it speaks protocol ${message.result.protocol}, this file speaks ${PROTOCOL}`)
      }
      if (typeof message.method === "string") serve(message).catch((error) => log(`serve: ${error}`))
      else shared.waiting.get(message.id)?.(message)
    } catch (error) {
      log(`not a message (${line.length} characters): ${error}`)
    }
  }
}

async function hello(instance) {
  const { api, directory, worktree, project_id } = instance
  const plugin_version = shared.sidecar.version ?? null
  const { pid } = process
  const answer = await request("hello", { protocol: PROTOCOL, plugin_version, api, directory, worktree, project_id, pid })
  if (!answer) return
  instance.history = answer.history === true
  instance.attachment_chars = Number.isInteger(answer.attachment_chars) ? answer.attachment_chars : 0
}

// What Python may ask of OpenCode.
const ASKED = new Set(["host.messages", "host.sessions", "host.generate", "host.discard"])

async function serve({ id, method, params }) {
  if (method === "host.cancel") return shared.questions.get(params?.id)?.stop.abort()
  const fail = (code, message) => id !== undefined && send({ id, error: { code, message } })
  if (!ASKED.has(method)) return fail(-32601, `no method ${method}`)
  const instance = shared.instances.get(params?.directory)
  if (!instance) return fail(-32602, "no such directory is open")
  const ask = instance[method]
  if (!ask) return fail(-32601, `this OpenCode has no ${method}`)
  const stop = new AbortController()
  shared.questions.set(id, { directory: instance.directory, stop })
  try {
    const answer = await ask(params, stop)
    const replacer = method === "host.messages" ? slim(instance) : undefined
    if (answer?.error) fail(-32000, JSON.stringify(answer.error).slice(0, 500))
    else if (id !== undefined) send({ id, result: answer?.data ?? null }, replacer)
  } catch (error) {
    fail(-32000, String(error))
  } finally {
    shared.questions.delete(id)
  }
}

// ---- What both versions of OpenCode share -------------------------------------------------------------------------

// Takes a directory; null when another copy of this file, or another instance, serves it already.
function open(instance) {
  const sidecar = readSidecar()
  if (!sidecar || directories.has(instance.directory)) return null
  directories.set(instance.directory, instance)
  shared.instances.set(instance.directory, instance)
  shared.sidecar ??= sidecar
  const running = Boolean(shared.child)
  if (start() && running) hello(instance)
  return instance
}

async function close(instance) {
  if (directories.get(instance.directory) !== instance) return
  if (shared.child) send({ method: "goodbye", params: { directory: instance.directory } })
  directories.delete(instance.directory)
  shared.instances.delete(instance.directory)
  for (const { directory, stop } of shared.questions.values()) if (directory === instance.directory) stop.abort()
  if (shared.instances.size) return
  const child = shared.child
  shared.child = shared.sidecar = null // the next start reads the sidecar again
  shared.rest = ""
  shared.deaths = shared.retryAt = 0
  shared.refused = false
  for (const settle of [...shared.waiting.values()]) settle()
  if (child) await finish(child, { kill: false })
}

const isText = (value) => typeof value === "string"
const isTool = (tool) => isText(tool?.name) && isText(tool.description) && tool.parameters?.type === "object"
const manifest = () => (Array.isArray(shared.sidecar.manifest) ? shared.sidecar.manifest.filter(isTool) : [])

function noteSession(info) {
  const title = String(info.title ?? "")
  const told = { parent: info.parentID ?? null, untitled: title.startsWith(UNTITLED), titled: HELPER_TITLE.test(title) }
  return keepSession(info.id, told)
}

// A session is a helper's by our title or our agent, until a prompt goes to another agent: then somebody talks in it.
function noteAgent(session, agent) {
  if (agent === HELPER) return keepSession(session, { asked: true })
  if (shared.sessions.has(session)) return keepSession(session, { talked: true })
}

function keepSession(session, more) {
  const unknown = { parent: null, untitled: false, titled: false, asked: false, talked: false }
  const about = { ...unknown, ...shared.sessions.get(session), ...more }
  about.helper = !about.talked && (about.titled || about.asked)
  about.child = Boolean(about.parent) || about.helper
  return keep(shared.sessions, session, about, MAX_SESSIONS)
}

// Sub-agents and our own helper sessions are children; a session OpenCode tells nothing about counts as a root.
async function sessionOf(instance, session) {
  if (shared.sessions.has(session)) return shared.sessions.get(session)
  const answer = await within(deadline("session"), instance.session(session))
  const info = answer?.data ?? answer
  return info?.id ? noteSession(info) : { child: false, parent: null }
}

const lineage = ({ child, parent }) => (child ? { child: true, parent } : {})

async function onPrompt(instance, { session, message, agent, text, parts }) {
  shared.compacting.delete(session)
  shared.overdue.delete(session)
  const command = shared.commands.get(session)
  shared.commands.delete(session)
  const typed = command && parts.some((part) => part.text === command.text) ? { typed: command.typed } : {}
  const found = await sessionOf(instance, session)
  const about = noteAgent(session, agent) ?? found
  if (about.helper) return
  const params = { directory: instance.directory, session, message, agent, text, parts, ...typed, ...lineage(about) }
  const answer = await request("chat.message", params)
  if (!answer) send({ method: "dropped", params: { directory: instance.directory, session, message } })
  keep(shared.blocks, message, !about.child && typeof answer?.block === "string" ? answer.block : "", MAX_BLOCKS)
  withhold(answer)
}

// Texts that hold what was forgotten meanwhile are shown no more, whatever that costs in cached prompts.
function withhold(answer) {
  const ids = Array.isArray(answer?.withheld) ? answer.withheld : []
  for (const id of ids) if (shared.blocks.has(id)) shared.blocks.set(id, "")
}

// The frozen texts of these user messages. Ids this process has not seen are asked for until Python has answered.
async function blocksOf(instance, session, ids) {
  const found = new Map(ids.map((id) => [id, shared.blocks.get(id) ?? ""]))
  const unknown = ids.filter((id) => !shared.blocks.has(id))
  const misses = shared.misses.get(session) ?? 0
  if (!unknown.length || misses >= MAX_FAILURES) return found
  const answer = await request("blocks", { directory: instance.directory, session, messages: unknown })
  if (!answer?.blocks) return keep(shared.misses, session, misses + 1, MAX_SESSIONS), found
  for (const id of unknown) {
    const text = isText(answer.blocks[id]) ? answer.blocks[id] : ""
    found.set(id, keep(shared.blocks, id, text, MAX_BLOCKS))
  }
  return found
}

// One answer holds for the session until a compaction, so that the prompt's beginning never changes in between.
async function snapshotOf(instance, session, system) {
  const known = shared.snapshots.get(session) ?? { text: undefined, failures: 0 }
  if (known.text !== undefined || known.failures >= MAX_FAILURES) return known.text
  const before = instance.history === false ? {} : { system: system.join("\n") }
  const answer = await request("snapshot", { directory: instance.directory, session, ...before })
  const next = answer ? { text: answer.text ?? null, failures: 0 } : { text: undefined, failures: known.failures + 1 }
  return keep(shared.snapshots, session, next, MAX_SESSIONS).text
}

// The digest's own message in the lists that we give back.
const digestId = (session) => `msg_backstory_${session}`

// How many of a list's first messages may be replaced: all before the newest user message, up to one without an id.
function replaceable(listed) {
  const turn = listed.findLastIndex(({ role }) => role === "user")
  const unnamed = listed.findIndex(({ id }) => id.startsWith(UNNAMED))
  return unnamed < 0 ? turn : Math.min(turn, unnamed)
}

const UNNAMED = "#" // begins what we call a message without an id

function isReplacement({ count, text }, most) {
  return isText(text) && text !== "" && Number.isInteger(count) && count >= 0 && count <= most
}

const idsOf = (listed) => listed.map(({ id }) => id)

// The text that stands in the place of a request's first `count` messages, or null. When Python does not answer, or
// answers what cannot be, what was replaced last stays replaced, so that neither the prompt's size nor its beginning
// jumps. After three silences it is left alone until the next prompt.
async function historyOf(instance, session, agent, listed) {
  if (instance.history === false || !listed.length) return null
  const most = replaceable(listed)
  const overdue = shared.overdue.get(session) ?? 0
  const params = { directory: instance.directory, session, agent, messages: listed }
  const answer = overdue < MAX_FAILURES ? await request("history", params) : undefined
  const replace = Object(answer).replace // null: nothing is replaced
  if (replace === undefined) keep(shared.overdue, session, overdue + 1, MAX_SESSIONS)
  else shared.overdue.delete(session)
  if (replace === null) return shared.histories.delete(session), null
  if (replace !== undefined && isReplacement(replace, most)) {
    const { count, text } = replace
    return keep(shared.histories, session, { ids: idsOf(listed.slice(0, count)), count, text }, MAX_HISTORIES)
  }
  const known = shared.histories.get(session)
  return known && known.count <= most && known.ids.every((id, at) => listed[at].id === id) ? known : null
}

async function callTool(instance, name, args, { session, message, agent, call, signal }) {
  const params = { directory: instance.directory, session, message, agent, call, name, arguments: args ?? {} }
  const answer = await request("tool", params, signal)
  withhold(answer)
  if (typeof answer?.output === "string") return { output: answer.output, title: answer.title, metadata: answer.metadata }
  return { output: shared.sidecar?.unavailable ?? UNAVAILABLE, title: "", metadata: {} }
}

// Attachments travel as data: addresses, up to the size that Python keeps, and as long as it takes them off our hands.
// A file that does not is told without one, and marked, since an empty file has an address too; of other texts that are
// addresses the media type is told.
const isAddress = (value) => isText(value) && value.length > SMALL_ADDRESS_CHARS && value.startsWith("data:")

function slim(instance) {
  const budget = budgetFor(instance)
  const isCut = (value) => isAddress(value) && !budget.fits(value)
  return (_key, value) => {
    if (value?.type === "file" && isCut(value.url)) return { ...value, url: null, cut: true }
    if (isCut(value)) return value.slice(0, 200).replace(/,.*$/s, ",")
    if (isAddress(value)) budget.left -= value.length
    return value
  }
}

function budgetFor(instance) {
  const most = instance.attachment_chars ?? 0
  const budget = { left: Math.max(MAX_BUFFER_CHARS / 2, most) - (shared.child?.unread ?? 0) }
  budget.fits = ({ length }) => length <= Math.min(most, budget.left)
  return budget
}

function forward(instance, type, properties, session) {
  if (type.startsWith("session.") && properties.info?.id) noteSession(properties.info)
  else if (type === "message.updated" && properties.info?.role === "user") noteAgent(session, properties.info.agent)
  if (["session.compacted", "session.compaction.ended"].includes(type)) {
    for (const map of [shared.snapshots, shared.misses, shared.compacting]) map.delete(session)
  }
  const about = shared.sessions.get(session) ?? { child: false }
  if (about.helper) { // and stays known: more may be told of it after its end
    if (type === "message.updated" && properties.info.role === "assistant") {
      shared.helpers.get(session)?.turns.set(properties.info.id, properties.info)
    }
    return
  }
  notify("event", { directory: instance.directory, type, properties, ...lineage(about) }, slim(instance))
  if (type !== "session.deleted") return
  const { snapshots, misses, histories, overdue, sessions, titles, models, commands, compacting } = shared
  const all = [snapshots, misses, histories, overdue, sessions, titles, models, commands, compacting]
  for (const known of all) known.delete(session)
}

const guarded = (name, hook) => async (...args) => {
  try {
    return await hook(...args)
  } catch (error) {
    log(`${name}: ${error?.stack ?? error}`)
  }
}

// ---- OpenCode 1.x -------------------------------------------------------------------------------------------------

const EVENTS = new Set([
  "session.created", "session.updated", "session.deleted", "session.idle", "session.compacted",
  "message.updated", "message.removed", "message.part.updated", "message.part.removed", "command.executed",
])

// A part is of interest once: text and reasoning when they have ended, a tool call when it has a result.
function isSettled({ type, time, state }) {
  if (type === "tool") return state?.status === "completed" || state?.status === "error"
  return !["text", "reasoning"].includes(type) || !time || time.end !== undefined
}

// Only requests of the main loop describe the environment; those for titles and compaction consist of their own prompt.
const OTHER_PROMPT = /^\s*You are (a title generator|.{0,40}summariz)/i
const TITLE_PROMPT = /^\s*You are a title generator/i
const isMainRequest = (system) => system.some((text) => text.includes("<env>")) && !OTHER_PROMPT.test(system[0])

// The request for a title is made of the very list that the first step shows us, by a task that runs beside it. It has
// taken its messages when its system prompt comes by; until then nothing is added to them.
async function titleFirst(session) {
  if (shared.titles.get(session) === true || !shared.sessions.get(session)?.untitled) return
  await within(deadline("title"), new Promise((resolve) => keep(shared.titles, session, resolve, MAX_SESSIONS)))
  keep(shared.titles, session, true, MAX_SESSIONS)
}

function titleSeen(session) {
  const resolve = shared.titles.get(session)
  keep(shared.titles, session, true, MAX_SESSIONS)
  if (resolve && resolve !== true) resolve()
}

// Asks the model in a session of its own, with nothing before the prompt and no tool, and deletes the session. The agent
// is a hidden primary one: OpenCode tells the model of every sub-agent, hidden or not.
const HELPER_PROMPT = "Answer the request. Write nothing else."
const SCHEMA_PROMPT = "Give your answer by calling the StructuredOutput tool, once."
const HELPER_AGENT = {
  mode: "primary", hidden: true, description: "Asked by Backstory, in sessions of its own.", prompt: HELPER_PROMPT,
  temperature: 0, permission: { "*": "deny", StructuredOutput: "allow" },
}

async function generate(instance, params, stop) {
  const { prompt, schema, timeout_ms } = params
  const timer = setTimeout(() => stop.abort(), Math.min(timeout_ms || MAX_GENERATE_MS, MAX_GENERATE_MS))
  const stopped = new Promise((resolve) => stop.signal.addEventListener("abort", resolve))
  let id, helper
  try {
    id = await openHelper(instance, params)
    if (!id) return { error: { name: "NoSession" }, requests: 0 }
    if (stop.signal.aborted) return { error: { name: "timeout" }, requests: 0 }
    helper = keep(shared.helpers, id, newHelper(params, stop), MAX_SESSIONS)
    const model = modelFor(instance, params)
    const body = {
      agent: HELPER, system: helper.system, tools: { "*": false, StructuredOutput: true }, ...(model ? { model } : {}),
      parts: [{ type: "text", text: prompt }], ...(schema ? { format: { type: "json_schema", schema } } : {}),
    }
    const at = { path: { id }, query: instance.query }
    helper.answer = instance.client.session.prompt({ ...at, body }).catch((error) => ({ error }))
    const answer = await Promise.race([helper.answer, stopped])
    const { retries, resting } = helper
    if (helper.overflown) return { error: { name: "ContextOverflowError" }, requests: retries + 1 }
    if (stop.signal.aborted) return { error: { name: "timeout" }, requests: retries + !resting, unanswered: !resting }
    return described(answer, helper)
  } finally {
    clearTimeout(timer)
    if (id) closeHelper(instance, id, helper, stop.signal.aborted).catch((error) => log(`close: ${error}`))
  }
}

function newHelper({ system, schema, max_output_tokens: limit }, stop) {
  const texts = [system || HELPER_PROMPT, ...(schema ? [SCHEMA_PROMPT] : [])]
  const counted = { turns: new Map(), retries: 0, resting: false, overflown: false }
  const helper = { system: texts.join("\n\n"), limit, stop, answer: null, ...counted }
  helper.begun = new Promise((resolve) => (helper.begin = resolve))
  return helper
}

const helperTitle = (feature) =>
  `${HELPER} ${/^[a-z0-9_]{1,40}$/.test(feature) ? feature : "question"} ${crypto.randomUUID().replaceAll("-", "")}`

async function openHelper({ client, query }, { feature, parent }) {
  const title = helperTitle(feature)
  const open = (more) => client.session.create({ body: { title, ...more }, query })
  let answer = parent ? await open({ parentID: parent }) : null
  if (!answer?.data) answer = await open({})
  if (answer.data) noteSession(answer.data)
  return answer.data?.id
}

// Not while OpenCode closes the folder, since a call would open it anew; Python removes what is left some other day.
// Nor before the request to the model has begun: what OpenCode loads for the first one is broken for good by an abort.
async function closeHelper(instance, id, helper, running) {
  const isOpen = () => directories.get(instance.directory) === instance
  const at = { path: { id }, query: instance.query }
  if (running && helper) {
    await Promise.race([helper.begun, helper.answer])
    if (isOpen()) await within(MAX_CLEAN_UP_MS, instance.client.session.abort(at))
    if (isOpen()) await within(MAX_CLEAN_UP_MS, helper.answer)
  }
  if (isOpen() && !shared.sessions.get(id)?.talked) await within(MAX_CLEAN_UP_MS, instance.client.session.delete(at))
  shared.helpers.delete(id)
}

function modelFor({ small }, { model, parent }) {
  const [, providerID, modelID] = /^([^/]+)\/(.+)$/.exec(model ?? small ?? "") ?? []
  return providerID ? { providerID, modelID } : shared.models.get(parent)
}

// A model that did not keep to a schema was asked again: all its turns count.
function described({ data, error }, { turns, retries }) {
  const { info, parts } = data ?? {}
  if (info) turns.set(info.id, info)
  const failure = info ? info.error : (error ?? { name: "NoAnswer" })
  const tokens = [...turns.values()].map(({ tokens }) => tokens ?? {})
  const sum = (...counts) => counts.flat().reduce((total, count) => total + (count || 0), 0)
  return {
    text: (parts ?? []).filter(isOwnText).map(({ text }) => text).join(""), structured: info?.structured ?? null,
    model: info ? `${info.providerID}/${info.modelID}` : null, finish: info?.finish ?? null,
    tokens: {
      input: sum(tokens.map(({ input, cache }) => sum(input, cache?.read, cache?.write))),
      output: sum(tokens.map(({ output, reasoning }) => sum(output, reasoning))),
    },
    requests: turns.size + retries,
    ...(failure ? { error: { name: failure.name ?? "Error", status: failure.data?.statusCode ?? null } } : {}),
  }
}

// Only what is ours beyond doubt is ever deleted: it has our title, no message that is not our agent's, and no session
// below it; and nothing that is under way here.
async function discard({ client, query }, { session }) {
  const at = { path: { id: session }, query }
  const { data } = await client.session.get(at)
  const isBusy = () => shared.helpers.has(session) || shared.sessions.get(session)?.talked // a prompt is no message yet
  const isStray = HELPER_TITLE.test(data?.title ?? "") && (await isUntouched(client, at)) && !isBusy()
  return isStray ? client.session.delete(at) : { error: "not a stray session of ours" }
}

async function isUntouched(client, at) {
  const [messages, below] = await Promise.all([client.session.messages(at), client.session.children(at)])
  const isOurs = ({ info }) => (info?.agent ?? info?.mode) === HELPER
  return Array.isArray(messages.data) && messages.data.every(isOurs) && below.data?.length === 0
}

function noteStatus({ sessionID, status }) {
  const helper = shared.helpers.get(sessionID)
  if (!helper) return
  helper.resting = status?.type === "retry"
  if (helper.resting) helper.retries = status.attempt
}

const isOwnText = ({ type, synthetic, ignored }) => type === "text" && !synthetic && !ignored

// Files are a person's as well; what OpenCode wrote in the user's name, such as the mark of a compaction, is not.
const isTyped = ({ type, synthetic, ignored }) => ["text", "file"].includes(type) && !synthetic && !ignored

const describeMessage = ({ info, parts }) => ({
  id: info.id, role: info.role,
  ...(info.role === "user" && !parts.some(isTyped) ? { synthetic: true } : {}),
  ...(info.summary === true || parts.some(({ type }) => type === "compaction") ? { summary: true } : {}),
})

// A user's message with the digest, like the newest of those that it stands before.
function digestMessage(session, { info: { agent, model, time } }, text) {
  const id = digestId(session)
  const part = { id: `prt_backstory_${session}`, messageID: id, sessionID: session, type: "text" }
  const info = { id, sessionID: session, role: "user", time, agent, model }
  return { info, parts: [{ ...part, synthetic: true, text }] }
}

const describePart = ({ id, type, text, synthetic, ignored }) => ({
  id, type, ...(type === "text" ? { text } : {}), ...(synthetic ? { synthetic } : {}), ...(ignored ? { ignored } : {}),
})

async function server({ client, directory, worktree, project }) {
  const query = { directory }
  const instance = await guarded("load", () => open({
    api: 1, directory, worktree, project_id: project?.id ?? null, client, query, small: null,
    session: (id) => client.session.get({ path: { id }, query }),
    "host.messages": ({ session }) => client.session.messages({ path: { id: session }, query }),
    "host.sessions": ({ search }) => client.session.list({ query: { ...query, ...(search ? { search } : {}) } }),
    "host.generate": async (params, stop) => ({ data: await generate(instance, params, stop) }),
    "host.discard": (params) => discard(instance, params),
  }))()
  if (!instance) return {}
  const tools = new Map(manifest().map((tool) => [tool.name, tool]))
  const toolHook = ({ name, description, parameters }) => ({
    description, args: parameters.properties ?? {},
    execute: (args, { sessionID, messageID, agent, callID, abort }) =>
      callTool(instance, name, args, { session: sessionID, message: messageID, agent, call: callID, signal: abort }),
  })

  return {
    config: guarded("config", (config) => {
      instance.small = config.small_model ?? null
      config.agent ??= {}
      if (config.agent[HELPER]) log(`the agent ${HELPER} is configured already, and is used as it is`)
      else config.agent[HELPER] = structuredClone(HELPER_AGENT)
    }),

    tool: Object.fromEntries([...tools].map(([name, tool]) => [name, toolHook(tool)])),

    // OpenCode takes every property of `args` as required; this undocumented field carries the schema as it is meant.
    "tool.definition": guarded("tool.definition", ({ toolID }, output) => {
      if (tools.has(toolID)) output.jsonSchema = structuredClone(tools.get(toolID).parameters)
    }),

    "chat.message": guarded("chat.message", ({ sessionID, agent }, { message, parts }) => {
      if (message.model) keep(shared.models, sessionID, message.model, MAX_SESSIONS)
      return onPrompt(instance, {
        session: sessionID, message: message.id, agent: message.agent ?? agent ?? null, parts: parts.map(describePart),
        text: parts.filter(isOwnText).map((part) => part.text).join("\n"),
      })
    }),

    // Some providers take no limit; OpenCode sets none for them, and neither do we.
    "chat.params": guarded("chat.params", ({ sessionID }, output) => {
      const helper = shared.helpers.get(sessionID)
      if (helper?.limit < output.maxOutputTokens) output.maxOutputTokens = helper.limit
      helper?.begin()
    }),

    // `backstory` in a shell of the agent acts for the agent, and its output is read by the model.
    "shell.env": guarded("shell.env", ({ sessionID }, output) => {
      if (sessionID) output.env = { ...output.env, BACKSTORY_CALLER: "agent" }
    }),

    // A command's prompt is a file's text; only what follows its name was typed.
    "command.execute.before": guarded("command.execute.before", ({ sessionID, arguments: typed }, { parts }) => {
      const text = parts.find(isOwnText)?.text
      if (text !== undefined && isText(typed)) keep(shared.commands, sessionID, { text, typed }, MAX_SESSIONS)
    }),

    // The list is that of one request alone: OpenCode reads it anew for the next.
    "experimental.chat.messages.transform": guarded("messages.transform", async (_input, { messages }) => {
      const session = messages[0]?.info.sessionID
      if (!session || (await sessionOf(instance, session)).child) return
      const compacting = shared.compacting.delete(session)
      const users = messages.filter(({ info }) => info.role === "user")
      const newest = users.at(-1)
      if (!newest) return
      const listed = messages.map(describeMessage)
      const digest = await historyOf(instance, session, newest.info.agent ?? null, listed)
      const asked = messages.slice(digest?.count ?? 0).filter((message) => !compacting && users.includes(message))
      const blocks = await blocksOf(instance, session, asked.map(({ info }) => info.id))
      if (users.length === 1 && !compacting && (digest || blocks.get(newest.info.id))) await titleFirst(session)
      messages.forEach((message, at) => {
        const { info, parts } = message
        const id = `prt_backstory_${info.id}`
        const text = blocks.get(info.id)
        if (!text || parts.some((part) => part.id === id)) return
        const part = { id, messageID: info.id, sessionID: session, type: "text", synthetic: true, text }
        messages[at] = { ...message, parts: [...parts, part] }
      })
      if (digest) messages.splice(0, digest.count, digestMessage(session, newest, digest.text))
    }),

    "experimental.chat.system.transform": guarded("system.transform", async ({ sessionID }, { system }) => {
      const helper = shared.helpers.get(sessionID)
      if (helper) system.splice(0, system.length, helper.system) // without the environment and the project's rules
      if (sessionID && TITLE_PROMPT.test(system[0])) titleSeen(sessionID)
      if (!sessionID || !isMainRequest(system) || (await sessionOf(instance, sessionID)).child) return
      const text = await snapshotOf(instance, sessionID, system)
      if (text) system.push(text)
    }),

    "experimental.session.compacting": guarded("compacting", async ({ sessionID }, output) => {
      const helper = shared.helpers.get(sessionID)
      if (helper) return (helper.overflown = true), helper.stop.abort() // a summary of the question is no answer
      shared.compacting.add(sessionID) // not taken back when the session goes idle: that event may be the last turn's
      if ((await sessionOf(instance, sessionID)).child) return
      const answer = await request("compacting", { directory, session: sessionID })
      const texts = Array.isArray(answer?.context) ? answer.context : []
      output.context.push(...texts.filter(isText))
    }),

    event: guarded("event", ({ event: { type, properties } }) => {
      if (type === "session.status") noteStatus(properties)
      if (!EVENTS.has(type) || (type === "message.part.updated" && !isSettled(properties.part))) return
      const { sessionID, info, part } = properties
      forward(instance, type, properties, sessionID ?? info?.sessionID ?? part?.sessionID ?? info?.id)
    }),

    dispose: guarded("dispose", () => close(instance)),
  }
}

// ---- OpenCode 2.x -------------------------------------------------------------------------------------------------
// Written from its published plugin API; no 2.x program was at hand, so only the test host has run this part.

const EVENTS_2 = new Set([
  "session.created", "session.updated", "session.deleted", "session.forked", "session.input.admitted",
  "session.text.ended", "session.reasoning.ended", "session.step.ended", "session.tool.called", "session.tool.success",
  "session.tool.failed", "session.execution.succeeded", "session.execution.failed", "session.execution.interrupted",
  "session.compaction.ended", "session.revert.committed",
])

// A copy of the message with the text at its end: OpenCode's own history must not change.
function withText(message, text) {
  const own = typeof message.content === "string" ? [{ type: "text", text: message.content }] : (message.content ?? [])
  const content = [...own, { type: "text", text: `\n\n${text}` }] // some providers join texts with nothing between
  return Object.assign(Object.create(Object.getPrototypeOf(message)), message, { content })
}

// There is no telling what a question took, nor ending it; it needs no session.
async function generate2(ctx, { system, prompt, model }) {
  const [, providerID, id] = /^([^/]+)\/(.+)$/.exec(model ?? "") ?? []
  try {
    const text = system ? `${system}\n\n${prompt}` : prompt
    const answer = await ctx.generate.text({ prompt: text, ...(id ? { model: { providerID, id } } : {}) })
    return { text: answer?.text ?? "", model, requests: 1 }
  } catch (error) {
    log(`generate: ${error}`)
    return { error: { name: error?.name ?? "Error" }, requests: 1, unanswered: true }
  }
}

const describeMessage2 = ({ id, role }, at) => ({ id: isText(id) && id ? id : `${UNNAMED}${at}`, role })

const nameOf = (agent) => (isText(agent) ? agent : null)

async function replaceHistory2(instance, { sessionID: session, agent, messages }) {
  const digest = await historyOf(instance, session, nameOf(agent), messages.map(describeMessage2))
  if (!digest) return
  const like = messages.findLast(({ role }) => role === "user")
  const own = { id: digestId(session), role: "user", content: [{ type: "text", text: digest.text }] }
  messages.splice(0, digest.count, Object.assign(Object.create(Object.getPrototypeOf(like)), own))
}

// OpenCode is about to summarise these messages; the last is its own request for that. Python may have the summary.
async function onCompaction2(instance, event) {
  const { sessionID: session, agent, messages, system } = event
  if (!session || event.result || (await sessionOf(instance, session)).child) return
  const listed = messages.map(describeMessage2)
  const params = { directory: instance.directory, session, agent: nameOf(agent), messages: listed }
  const answer = await request("compacting", params)
  if (isText(answer?.summary) && answer.summary) return (event.result = { summary: answer.summary })
  await replaceHistory2(instance, event)
  const texts = Array.isArray(answer?.context) ? answer.context.filter(isText) : []
  system.push(...texts.map((text) => ({ type: "text", text })))
}

async function follow(instance, events) {
  for await (const { type, data, location } of events) {
    if (!EVENTS_2.has(type) || (location?.directory && location.directory !== instance.directory)) continue
    forward(instance, type, data ?? {}, data?.sessionID ?? data?.info?.id)
  }
}

// A registration that not every 2.x has.
async function offered(register) {
  try {
    return await register()
  } catch (error) {
    log(`not offered: ${error}`)
  }
}

async function setup(ctx) {
  if (typeof ctx?.session?.hook !== "function") return // a 1.x program calls this too, with less to offer
  const { directory = process.cwd(), project } = ctx.location ?? {}
  const instance = await guarded("load", () => open({
    api: 2, directory, worktree: project?.directory ?? directory, project_id: project?.id ?? null,
    session: (id) => ctx.session.get({ sessionID: id }),
    ...(ctx.generate?.text ? { "host.generate": async (params) => ({ data: await generate2(ctx, params) }) } : {}),
  }))()
  if (!instance) return
  const stopped = new AbortController()
  const registrations = await Promise.all([
    ctx.tool?.transform((editor) => {
      for (const { name, description, parameters } of manifest()) {
        const execute = async (input, { sessionID, messageID, agent, id, callID, signal }) => {
          const from = { session: sessionID, message: messageID, agent, call: callID ?? id, signal }
          const answer = await callTool(instance, name, input, from)
          return { content: answer.output, metadata: { ...answer.metadata, title: answer.title ?? "" } }
        }
        editor.add({ name, description, input: parameters, options: { codemode: false }, execute })
      }
    }),
    ctx.session.hook("prompt", guarded("prompt", ({ sessionID, messageID, prompt }) => onPrompt(instance, {
      session: sessionID, message: messageID, agent: null,
      text: prompt.text, parts: [{ id: null, type: "text", text: prompt.text }],
    }))),
    ctx.session.hook("context", guarded("context", async (event) => {
      const { sessionID: session, kind, messages, system } = event
      if (!session || (kind ?? "primary") !== "primary" || (await sessionOf(instance, session)).child) return
      await replaceHistory2(instance, event)
      const isUser = ({ id, role }) => role === "user" && isText(id) && id !== digestId(session)
      const blocks = await blocksOf(instance, session, messages.filter(isUser).map(({ id }) => id))
      messages.forEach((message, at) => {
        const text = isUser(message) && blocks.get(message.id)
        if (text) messages[at] = withText(message, text)
      })
      const snapshot = await snapshotOf(instance, session, system.map(({ text }) => text ?? ""))
      if (snapshot) system.push({ type: "text", text: snapshot })
    })),
    offered(() => ctx.session.hook("compaction", guarded("compaction", (event) => onCompaction2(instance, event)))),
  ])
  const events = ctx.event?.subscribe?.({ signal: stopped.signal })
  if (events) follow(instance, events).catch((error) => log(`events: ${error}`))
  return guarded("cleanup", async () => {
    stopped.abort()
    for (const registration of registrations) await registration?.dispose?.()
    await close(instance)
  })
}

export default { id: "backstory", server, setup }
