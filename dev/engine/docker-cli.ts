import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/**
 * wrangler builds or pulls every image through the docker CLI before it starts workerd, and cannot be told not to.
 * This one succeeds at everything and does nothing; it drains the Dockerfile a build writes to its standard input.
 */
const SCRIPT = `#!/bin/sh
if [ "$1" = "--host" ]; then shift 2; fi
case "$1" in
  build) cat >/dev/null ;;
  info)
    case "$*" in
      *SecurityOptions*) echo '[]' ;;
      *) echo 'Server Version: 0' ;;
    esac ;;
  image)
    case "$*" in
      *ExposedPorts*) echo 1 ;;
    esac ;;
esac
exit 0
`;

/** Returns the path of the script. */
export function writeDockerCli(directory: string): string {
  const path = join(directory, "docker");
  writeFileSync(path, SCRIPT);
  chmodSync(path, 0o755);
  return path;
}
