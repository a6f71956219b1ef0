import { ArchiveError, unpackArchive } from "./archive.ts";
import type { Disk } from "./disk.ts";
import type { CommandOutcome } from "./shell.ts";

/** The command by which the SDK unpacks an archive in local mode. This server makes the archives, so it answers the command itself. */
const PROGRAM = ["/usr/bin/unsquashfs", "-f", "-d"];

interface Unpacking {
  readonly directory: string;
  readonly archive: string;
}

/** What a command would unpack where, or undefined for every other command. */
export function asUnpacking(command: string): Unpacking | undefined {
  const words = command.startsWith(PROGRAM[0] ?? "") ? splitWords(command) : undefined;
  if (words === undefined || words.length !== PROGRAM.length + 2 || PROGRAM.some((word, index) => words[index] !== word)) return undefined;
  const [directory = "", archive = ""] = words.slice(PROGRAM.length);
  return { directory, archive };
}

/** Ends like the program does: its failures are exit code 1 and a text. */
export async function unpack({ directory, archive }: Unpacking, disk: Disk, resolve: (path: string) => string): Promise<CommandOutcome> {
  try {
    await unpackArchive(resolve(archive), resolve(directory));
    return { exitCode: 0, stdout: "", stderr: "" };
  } catch (error) {
    return { exitCode: 1, stdout: "", stderr: disk.visible(complaint(error, archive)) };
  }
}

function complaint(error: unknown, archive: string): string {
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof ArchiveError) return `FATAL ERROR: ${message} on ${archive}`;
  return error instanceof Error && "code" in error && error.code === "ENOENT"
    ? `Could not open ${archive}, because No such file or directory`
    : `FATAL ERROR: ${message}`;
}

/** The words of a simple command, or undefined where it is more than that. */
function splitWords(command: string): readonly string[] | undefined {
  const words: string[] = [];
  let rest = command.trim();
  while (rest !== "") {
    const word = /^(?:[^\s'"\\$`|&;<>()*?[\]{}~#!]|\\.|'[^']*'|"(?:[^"\\$`]|\\["\\$`])*")+/s.exec(rest)?.[0];
    if (word === undefined) return undefined;
    words.push(unquote(word));
    const after = rest.slice(word.length);
    if (after !== "" && !/^\s/.test(after)) return undefined;
    rest = after.trim();
  }
  return words;
}

function unquote(word: string): string {
  return word.replace(/\\(.)|'([^']*)'|"((?:[^"\\]|\\.)*)"/gs, (_, escaped?: string, single?: string, double?: string) => {
    return escaped ?? single ?? (double ?? "").replace(/\\(["\\$`])/g, "$1");
  });
}
