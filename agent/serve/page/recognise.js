// What a text is, by its content: a plan, a model's config, a launch command, or a brief.

const ENGINES =
  /\b(vllm\s+serve|vllm\.entrypoints|sglang\.launch_server|sglang\s+serve|trtllm-serve|tensorrt_llm|dynamo\s+(serve|run))\b/;
const MANIFEST = /^\s*(apiVersion|services)\s*:/m;

// A text with a plan in it, though it is no JSON as it stands: what validation explains.
const FORMAT = /"format"\s*:\s*"shardwright\/plan"/;
const PARTS = [/"strategy"\s*:/, /"model"\s*:/, /"(?:nodes|hardware|workload)"\s*:/];
const isOfPlan = (text) => text.includes("{") && (FORMAT.test(text) || PARTS.every((part) => part.test(text)));

const parsed = (text) => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

// {kind: "plan" | "config" | "command" | "brief", value}
export const recognise = (text) => {
  const value = /^\s*\{/.test(text) ? parsed(text) : undefined;
  if (value && typeof value === "object" && !Array.isArray(value)) {
    // `plan --format json` holds the document under a name.
    const document = value.plan && typeof value.plan === "object" ? value.plan : value;
    if (
      Array.isArray(document.nodes) ||
      document.format === "shardwright/plan" ||
      (document.strategy && document.model)
    )
      return { kind: "plan", value: document };
    if (typeof value.model_type === "string" || Array.isArray(value.architectures)) return { kind: "config", value };
    return { kind: "brief", value: text };
  }
  if (isOfPlan(text)) return { kind: "plan", value: text.slice(text.indexOf("{")) };
  if (ENGINES.test(text) || (MANIFEST.test(text) && /vllm|sglang|trtllm|tensorrt|dynamo/i.test(text)))
    return { kind: "command", value: text };
  return { kind: "brief", value: text };
};

// Whether pasted text is more than a message: it is put where it belongs instead of into the message.
export const isDocument = (text) => {
  const { kind } = recognise(text);
  return kind !== "brief" || (text.length > 400 && text.split("\n").length > 5);
};
