/**
 * Label selectors in the syntax of Kubernetes: `a=b`, `a==b`, `a!=b`, `a in (b,c)`, `a notin (b,c)`, `a`, `!a`, joined by commas.
 * As there, `!=` and `notin` also match what lacks the key.
 */
import type { LabelRequirement } from "../store/reading.ts";
import { isLabelKey, isLabelValue } from "./metadata.ts";
import { Problem } from "./problem.ts";

const MAX_LENGTH = 4096;
/** Each requirement is one condition of one SQL statement with few parameters. */
const MAX_REQUIREMENTS = 20;
const TOKEN = /\s*(==|!=|[=!(),]|[^\s=!(),<>]+)/y;

/** Throws INVALID_QUERY. */
export function parseLabelSelector(text: string): readonly LabelRequirement[] {
  if (text.trim() === "") return [];
  const tokens = new Tokens(text);
  const requirements: LabelRequirement[] = [];
  do {
    requirements.push(parseRequirement(tokens));
    if (requirements.length > MAX_REQUIREMENTS) throw invalid(`must have at most ${MAX_REQUIREMENTS} requirements`);
  } while (tokens.take(","));
  if (tokens.peek() !== null) throw invalid("must separate its requirements by commas");
  return requirements;
}

/** The same for all spellings of one selector. */
export function canonicalSelector(requirements: readonly LabelRequirement[]): string {
  const parts = requirements.map(({ key, operator, values }) => JSON.stringify([key, operator, ...values.toSorted()]));
  return parts.toSorted().join();
}

function parseRequirement(tokens: Tokens): LabelRequirement {
  if (tokens.take("!")) return { key: parseKey(tokens), operator: "DoesNotExist", values: [] };
  const key = parseKey(tokens);
  if (tokens.take("=") || tokens.take("==")) return { key, operator: "In", values: [parseValue(tokens)] };
  if (tokens.take("!=")) return { key, operator: "NotIn", values: [parseValue(tokens)] };
  if (tokens.take("in")) return { key, operator: "In", values: parseValues(tokens) };
  if (tokens.take("notin")) return { key, operator: "NotIn", values: parseValues(tokens) };
  return { key, operator: "Exists", values: [] };
}

function parseKey(tokens: Tokens): string {
  const key = tokens.next() ?? "";
  if (!isLabelKey(key)) throw invalid("has a key that is not a label's name");
  return key;
}

/** The empty value is written as nothing at all. */
function parseValue(tokens: Tokens): string {
  const following = tokens.peek();
  const value = following === null || following === "," || following === ")" ? "" : (tokens.next() ?? "");
  if (!isLabelValue(value)) throw invalid("has a value that is not a label's value");
  return value;
}

function parseValues(tokens: Tokens): readonly string[] {
  if (!tokens.take("(")) throw invalid("must have its set of values in parentheses");
  const values = [parseValue(tokens)];
  while (tokens.take(",")) values.push(parseValue(tokens));
  if (!tokens.take(")")) throw invalid("must close its set of values");
  return values;
}

class Tokens {
  readonly #tokens: readonly string[];
  #position = 0;

  constructor(text: string) {
    this.#tokens = tokenize(text);
  }

  peek(): string | null {
    return this.#tokens[this.#position] ?? null;
  }

  next(): string | null {
    const token = this.peek();
    this.#position += 1;
    return token;
  }

  take(token: string): boolean {
    const found = this.peek() === token;
    if (found) this.#position += 1;
    return found;
  }
}

function tokenize(text: string): readonly string[] {
  if (text.length > MAX_LENGTH) throw invalid(`must have at most ${MAX_LENGTH} characters`);
  const trimmed = text.trim();
  const tokens: string[] = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < trimmed.length) {
    const token = TOKEN.exec(trimmed)?.[1];
    if (token === undefined) throw invalid("has a character that selectors do not know");
    tokens.push(token);
  }
  return tokens;
}

function invalid(detail: string): Problem {
  return new Problem("INVALID_QUERY", "The label selector cannot be read.", { errors: [{ pointer: "query/labelSelector", detail }] });
}
