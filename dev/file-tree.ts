/** Trees of files as they are hard to keep, and what tells whether one was kept: both as commands for the shell that is inside. */

export interface TreeOptions {
  readonly directory: string;
  readonly smallFiles: number;
  /** Of one more file. */
  readonly bigFileBytes: number;
}

const FILES_PER_DIRECTORY = 100;

/** Builds a tree: many small files, links of both kinds, odd modes, empty directories and files, odd names, one big file. */
export function seedTree({ directory, smallFiles, bigFileBytes }: TreeOptions): string {
  return `(set -e
cd ${directory}
for ((i = 0; i < ${smallFiles}; i++)); do
  d=many/$((i / ${FILES_PER_DIRECTORY}))
  ((i % ${FILES_PER_DIRECTORY})) || mkdir -p "$d"
  printf '%s\\n' "file $i" "$RANDOM$RANDOM$RANDOM" >"$d/$i.txt"
done
mkdir -p links modes empty/a/b 'ünï – 目录' $'odd\\nnames'
printf linked >links/first && ln links/first links/second && ln links/first 'ünï – 目录/third'
ln -s first links/relative && ln -s /nowhere/at/all links/dangling && ln -s ../many links/directory && ln -s self links/self
for mode in 000 400 444 555 600 644 755 777; do printf "$mode" >"modes/$mode" && chmod "$mode" "modes/$mode"; done
mkdir -m 500 modes/closed && mkdir -m 1777 modes/sticky && mkfifo -m 640 modes/fifo
: >empty/file
printf x >'ünï – 目录/naïve 文件 🙂' && printf x >$'odd\\nnames/tab\\there' && printf x >'odd
names/ two  spaces ' && printf x >./-rf && printf x >'*' && printf x >"quote'\\"\\\\" && printf x >.hidden && printf x >$'not-utf8-\\xff'
head -c ${bigFileBytes} /dev/urandom >big)`;
}

/** Prints a digest of paths, types, modes, link targets, counts of links and contents. */
export function digestTree(directory: string): string {
  const entries = String.raw`find . -type d -printf '%P\t%y\t%m\0' -o -printf '%P\t%y\t%m\t%l\t%n\0' | LC_ALL=C sort -z`;
  const contents = "find . -type f -print0 | LC_ALL=C sort -z | xargs -0 -r sha256sum";
  return `cd ${directory} && { ${entries}; ${contents}; } | sha256sum`;
}
