/** Commands that Mooring itself runs in a container: without a session, so that none is left behind and none is needed. */
import type { Sandbox } from "@cloudflare/sandbox";

type Client = Pick<Sandbox["client"], "commands">;
type CommandResult = Awaited<ReturnType<Client["commands"]["execute"]>>;

/** The SDK's name for none. */
const NO_SESSION = "__DISABLE_SESSION__";
const IS_EMPTY = 1;

export function runCommand(client: Client, command: string, cwd: string): Promise<CommandResult> {
  return client.commands.execute(command, NO_SESSION, { cwd });
}

/** Whether a directory has no entry, or does not exist. One that cannot be read is not known to be empty. */
export async function isEmptyDirectory(client: Client, directory: string): Promise<boolean> {
  const path = quote(directory);
  const command = `(test -d ${path} || exit ${IS_EMPTY}; entries=$(ls -A ${path}) || exit 2; test -n "$entries")`;
  return (await internally(client, command)).exitCode === IS_EMPTY;
}

/** Leaves the directory itself, in which processes may be at work. */
export async function clearDirectory(client: Client, directory: string): Promise<void> {
  const path = quote(directory);
  const { exitCode } = await internally(client, `(test ! -d ${path} || find ${path}/ -mindepth 1 -delete)`);
  if (exitCode !== 0) throw new Error("the working directory could not be cleared for the restore");
}

function internally(client: Client, command: string): Promise<CommandResult> {
  return client.commands.execute(command, NO_SESSION, { cwd: "/", origin: "internal" });
}

function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
