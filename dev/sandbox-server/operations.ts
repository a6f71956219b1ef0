import { backupOperations } from "./backup.ts";
import { commandOperations } from "./commands.ts";
import { openDisk } from "./disk.ts";
import { OperationError } from "./errors.ts";
import { fileOperations } from "./files.ts";
import { portOperations } from "./ports.ts";
import { Processes, processOperations } from "./processes.ts";
import { Sessions } from "./sessions.ts";
import { containerEnvironment, type Settings } from "./settings.ts";
import { utilityOperations } from "./utilities.ts";

export type Operations = ReturnType<typeof createOperations>;

/**
 * Everything a sandbox can be asked, grouped and named as in the SDK's interface. Each transport only carries these:
 * what one can do, all can.
 */
export function createOperations(settings: Settings, env: NodeJS.ProcessEnv) {
  const disk = openDisk(settings);
  const sessions = new Sessions(disk, containerEnvironment(settings, env));
  const processes = new Processes(sessions, disk);
  return {
    commands: commandOperations(sessions, processes, disk),
    files: fileOperations(sessions),
    processes: processOperations(processes),
    ports: portOperations(processes),
    utils: utilityOperations(sessions),
    git: notImplemented(["checkout"]),
    interpreter: notImplemented(["createCodeContext", "streamCode", "runCodeStream", "listCodeContexts", "deleteCodeContext"]),
    backup: {
      ...backupOperations(sessions, disk),
      ...notImplemented(["restoreArchive", "uploadParts"], "which has local mode only (localBucket)"),
    },
    watch: notImplemented(["watch", "checkChanges"]),
    tunnels: notImplemented(["runQuickTunnel", "runNamedTunnel", "destroyTunnel", "listTunnels", "ensureTunnelRun", "stopTunnelRun"]),
  };
}

/** Operations of the SDK that the local engine does not offer: refused by name, so that a caller sees what is missing. */
function notImplemented<Name extends string>(names: readonly Name[], why?: string): Record<Name, () => Promise<never>> {
  return Object.fromEntries(names.map((name) => [name, () => Promise.reject(refusal(name, why))])) as Record<Name, () => Promise<never>>;
}

function refusal(operation: string, why?: string): OperationError {
  const message = `${operation} is not implemented by the local sandbox server${why === undefined ? "" : `, ${why}`}`;
  return new OperationError("NOT_IMPLEMENTED", message, { operation });
}
