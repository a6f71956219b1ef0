/**
 * Entity tags and conditional requests (RFC 9110, section 13). The tag stands for what the API writes, not for the status:
 * the controller's work breaks no read-modify-write. Its first half, from the uid, tells two lives of one name apart.
 */
import type { Workspace } from "../workspace.ts";
import { Problem } from "./problem.ts";

type Tags = "*" | readonly string[];

export interface Preconditions {
  readonly ifMatch: Tags | null;
  readonly ifNoneMatch: Tags | null;
}

const ENTITY_TAGS = /^(?: *(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*" *(?:,|$))+$/;
const ENTITY_TAG = /(?:W\/)?"[^"]*"/g;

export function toEtag({ uid, revision }: Pick<Workspace, "uid" | "revision">): string {
  return `"${uid.slice(0, 8)}-r${revision}"`;
}

export function readPreconditions(headers: Headers): Preconditions {
  return { ifMatch: readTags(headers, "If-Match"), ifNoneMatch: readTags(headers, "If-None-Match") };
}

/** Throws PRECONDITION_FAILED. `tags` are those of what is there; none: there is nothing. */
export function checkPreconditions({ ifMatch, ifNoneMatch }: Preconditions, tags: readonly string[]): void {
  if (ifMatch !== null && !matches(ifMatch, tags)) throw failed("If-Match", "What is there is not in the state that If-Match names.");
  // If-None-Match compares weakly: a client's W/ prefix is no difference.
  const plain = ifNoneMatch === "*" || ifNoneMatch === null ? ifNoneMatch : ifNoneMatch.map((tag) => tag.replace(/^W\//, ""));
  if (plain !== null && matches(plain, tags)) throw failed("If-None-Match", "What is there is excluded by If-None-Match.");
}

function matches(wanted: Tags, tags: readonly string[]): boolean {
  return wanted === "*" ? tags.length > 0 : wanted.some((tag) => tags.includes(tag));
}

/** A header that cannot be read must not be taken for none: the write it was to prevent would happen. */
function readTags(headers: Headers, name: "If-Match" | "If-None-Match"): Tags | null {
  const value = headers.get(name)?.trim();
  if (value === undefined) return null;
  if (value === "*") return "*";
  if (!ENTITY_TAGS.test(value)) {
    throw new Problem("INVALID_HEADER", `The header ${name} is not a list of entity tags.`, {
      errors: [{ pointer: `header/${name}`, detail: 'must be * or quoted tags, such as "7f2c91aa-r5"' }],
    });
  }
  return value.match(ENTITY_TAG) ?? [];
}

function failed(name: string, detail: string): Problem {
  return new Problem("PRECONDITION_FAILED", detail, { errors: [{ pointer: `header/${name}`, detail: "is not satisfied" }] });
}
