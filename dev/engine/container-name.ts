export interface ContainerName {
  /** Worker name, preceded by workerd's session where workerd was given one. */
  readonly prefix: string;
  readonly className: string;
  readonly doId: string;
  readonly role: "App" | "Sidecar";
}

/**
 * Reads the name workerd gives a container: `workerd-<worker>-<Class>-<DO id>` or
 * `workerd-<session>-<worker>-<Class>-<DO id>`, with `-proxy` at the end for the sidecar.
 * Worker names and sessions may hold dashes, class names cannot.
 */
export function parseContainerName(name: string): ContainerName | null {
  const match = /^workerd-(.+)-([A-Za-z_$][\w$]*)-([0-9a-f]{64})(-proxy)?$/.exec(name);
  if (match === null) return null;
  const [, prefix = "", className = "", doId = "", proxy] = match;
  return { prefix, className, doId, role: proxy === undefined ? "App" : "Sidecar" };
}
