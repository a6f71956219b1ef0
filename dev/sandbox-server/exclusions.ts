/** Patterns of what an archive leaves out, as `mksquashfs -wildcards` reads them. */
import { readdir } from "node:fs/promises";

/** Whether the entry with these names, from the directory's own child down to it, is left out. */
type Exclusion = (path: readonly string[]) => boolean;

/** Before a pattern that holds at every depth, not for the directory's own entries alone. */
const EVERYWHERE = "... ";

/** Throws a RangeError for what mksquashfs refuses. */
export function compileExclusions(patterns: readonly string[]): Exclusion {
  const rules = patterns.map((pattern) => {
    const everywhere = pattern.startsWith(EVERYWHERE);
    const relative = everywhere ? pattern.slice(EVERYWHERE.length) : pattern;
    if (/^(\/|\.\.?\/)/.test(relative)) {
      throw new RangeError("/, ./ and ../ prefixed excludes not supported with -wildcards or -regex options");
    }
    return { everywhere, parts: relative.split("/").filter(Boolean).map(compileName) };
  });
  return (path) =>
    rules.some(({ everywhere, parts }) => {
      const above = path.length - parts.length;
      if (parts.length === 0 || above < 0 || (above > 0 && !everywhere)) return false;
      return parts.every((part, index) => part.test(path[above + index] ?? ""));
    });
}

/** The names of everything in a directory that is not left out, itself first: relative to it, each with a NUL behind. */
export async function namesWithout(directory: string, isExcluded: Exclusion): Promise<Buffer> {
  const names: Buffer[] = [];
  // A name need not be UTF-8: what is passed on are its bytes.
  const visit = async (name: Buffer, path: readonly string[]): Promise<void> => {
    names.push(name, Buffer.from("\0"));
    const real = Buffer.concat([Buffer.from(`${directory}/`), name]);
    for (const entry of await readdir(real, { encoding: "buffer", withFileTypes: true })) {
      const entryPath = [...path, entry.name.toString("utf8")];
      if (isExcluded(entryPath)) continue;
      const entryName = Buffer.concat([name, Buffer.from("/"), entry.name]);
      if (entry.isDirectory()) await visit(entryName, entryPath);
      else names.push(entryName, Buffer.from("\0"));
    }
  };
  await visit(Buffer.from("."), []);
  return Buffer.concat(names);
}

/** A pattern of one name, as fnmatch(3) with FNM_PERIOD and FNM_EXTMATCH: no wildcard matches a dot at the begin. */
function compileName(pattern: string): RegExp {
  return new RegExp(`^${/^([*?[]|[+@!]\()/.test(pattern) ? "(?!\\.)" : ""}${translate(pattern)}$`, "su");
}

function translate(pattern: string): string {
  if (pattern === "") return "";
  const group = /^([?*+@!])\(/.exec(pattern);
  const end = group === null ? -1 : endOfGroup(pattern);
  if (group !== null && end !== -1) return translateGroup(group[1] ?? "", pattern.slice(2, end), translate(pattern.slice(end + 1)));
  const bracket = /^\[([!^]?)(\]?[^\]]*)\]/.exec(pattern);
  if (bracket !== null) {
    const [whole, negation = "", members = ""] = bracket;
    return `[${negation === "" ? "" : "^"}${members.replace(/[\\[\]^]/g, "\\$&")}]${translate(pattern.slice(whole.length))}`;
  }
  if (pattern.startsWith("*")) return `.*${translate(pattern.slice(1))}`;
  if (pattern.startsWith("?")) return `.${translate(pattern.slice(1))}`;
  const [first = "", second = ""] = pattern;
  const literal = first === "\\" && second !== "" ? second : first;
  const rest = pattern.slice(first === "\\" ? first.length + second.length : first.length);
  return (/[\\^$.*+?()[\]{}|/]/.test(literal) ? `\\${literal}` : literal) + translate(rest);
}

function translateGroup(kind: string, alternatives: string, rest: string): string {
  const any = `(?:${splitAlternatives(alternatives).map(translate).join("|")})`;
  switch (kind) {
    case "!":
      return `(?!${any}${rest}$).*${rest}`;
    case "@":
      return any + rest;
    default:
      return any + kind + rest;
  }
}

/** Of the parenthesis that closes the group the pattern begins with; -1 where none does. */
function endOfGroup(pattern: string): number {
  let depth = 0;
  for (let index = 1; index < pattern.length; index += 1) {
    if (pattern[index] === "\\") index += 1;
    else if (pattern[index] === "(") depth += 1;
    else if (pattern[index] === ")" && --depth === 0) return index;
  }
  return -1;
}

function splitAlternatives(text: string): readonly string[] {
  const parts = [""];
  let depth = 0;
  for (let index = 0; index < text.length; index += 1) {
    const character = text[index] ?? "";
    if (character === "(") depth += 1;
    if (character === ")") depth -= 1;
    if (character === "|" && depth === 0) parts.push("");
    else parts[parts.length - 1] += character === "\\" ? character + (text[++index] ?? "") : character;
  }
  return parts;
}
