/** What one command in a session's shell may change for itself alone. */
export interface CommandScope {
  readonly cwd?: string | undefined;
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
}

/** Where one command's output goes. */
export interface CommandFiles {
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * The text that makes a long-lived shell run one command and report `<number> <exit code>` on descriptor 3.
 *
 * The command runs in the shell itself, so that `cd`, `export` and functions last; through `eval`, so that an unclosed
 * quote fails that command and does not swallow the next ones. Descriptor 3 is closed to it: a background job that
 * kept it could report in the shell's name.
 */
export function shellScript(number: number, command: string, files: CommandFiles, scope: CommandScope): string {
  const variables = Object.entries(scope.env ?? {}).flatMap(([name, value]) => (value === undefined ? [] : [{ name, value }]));
  const run = [
    ...variables.map(({ name, value }, index) => enter(name, value, index)),
    `{ eval ${quote(command)}`,
    `} </dev/null >${quote(files.stdout)} 2>${quote(files.stderr)} 3>&-`,
    "MOORING_STATUS=$?",
    ...variables.map(({ name }, index) => leave(name, index)),
  ];
  return [...inDirectory(scope.cwd, run, files), `echo "${number} $MOORING_STATUS" >&3`, ""].join("\n");
}

/** A word that the shell takes literally. */
export function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function inDirectory(cwd: string | undefined, run: readonly string[], files: CommandFiles): readonly string[] {
  if (cwd === undefined) return run;
  return [
    "MOORING_PREVIOUS=$PWD",
    `if builtin cd -- ${quote(cwd)} >${quote(files.stdout)} 2>${quote(files.stderr)}; then`,
    ...run,
    `builtin cd -- "$MOORING_PREVIOUS"`,
    "else MOORING_STATUS=1",
    "fi",
  ];
}

function enter(name: string, value: string, index: number): string {
  return `MOORING_HAD_${index}=\${${name}+x} MOORING_WAS_${index}=\${${name}-}; export ${name}=${quote(value)}`;
}

function leave(name: string, index: number): string {
  const restore = `if [ -n "$MOORING_HAD_${index}" ]; then ${name}=$MOORING_WAS_${index}; else unset ${name}; fi`;
  return `${restore}; unset MOORING_HAD_${index} MOORING_WAS_${index}`;
}
