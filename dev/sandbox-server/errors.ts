/** The codes this server answers with, and the HTTP status of each; the SDK makes its error classes from them. */
const STATUS_BY_CODE = {
  FILE_NOT_FOUND: 404,
  FILE_TOO_LARGE: 413,
  PERMISSION_DENIED: 403,
  IS_DIRECTORY: 400,
  NOT_DIRECTORY: 400,
  NO_SPACE: 500,
  READ_ONLY: 403,
  NAME_TOO_LONG: 400,
  FILESYSTEM_ERROR: 500,
  COMMAND_NOT_FOUND: 404,
  COMMAND_EXECUTION_ERROR: 500,
  INVALID_COMMAND: 400,
  PROCESS_NOT_FOUND: 404,
  PROCESS_ERROR: 500,
  SESSION_ALREADY_EXISTS: 409,
  SESSION_DESTROYED: 410,
  SESSION_TERMINATED: 410,
  BACKUP_CREATE_FAILED: 500,
  INVALID_BACKUP_CONFIG: 400,
  VALIDATION_FAILED: 400,
  UNKNOWN_ERROR: 500,
  INTERNAL_ERROR: 500,
  NOT_IMPLEMENTED: 501,
} as const;

export type ErrorCode = keyof typeof STATUS_BY_CODE;

/** A refusal or failure the caller is told about, with one of the SDK's codes. */
export class OperationError extends Error {
  override readonly name = "OperationError";
  readonly code: ErrorCode;
  readonly context: Readonly<Record<string, unknown>>;

  constructor(code: ErrorCode, message: string, context: Readonly<Record<string, unknown>> = {}) {
    super(message);
    this.code = code;
    this.context = context;
  }
}

export interface ErrorBody {
  readonly code: ErrorCode;
  readonly message: string;
  readonly context: Readonly<Record<string, unknown>>;
  readonly httpStatus: number;
  readonly timestamp: string;
}

/** Any thrown value as an OperationError; what nobody classified is INTERNAL_ERROR. */
export function asOperationError(error: unknown): OperationError {
  if (error instanceof OperationError) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new OperationError("INTERNAL_ERROR", message, { originalError: message });
}

/** The body of an error response. */
export function errorBody(error: OperationError, httpStatus: number = STATUS_BY_CODE[error.code]): ErrorBody {
  return { code: error.code, message: error.message, context: error.context, httpStatus, timestamp: new Date().toISOString() };
}

/** The refusal of a request that lacks something. */
export function validationError(field: string, message: string): OperationError {
  return new OperationError("VALIDATION_FAILED", message, { validationErrors: [{ field, message, code: "INVALID" }] });
}

const CODE_BY_ERRNO: Readonly<Record<string, ErrorCode>> = {
  ENOENT: "FILE_NOT_FOUND",
  EACCES: "PERMISSION_DENIED",
  EPERM: "PERMISSION_DENIED",
  EISDIR: "IS_DIRECTORY",
  ENOTDIR: "NOT_DIRECTORY",
  ENOSPC: "NO_SPACE",
  EROFS: "READ_ONLY",
  ENAMETOOLONG: "NAME_TOO_LONG",
};

/** A failed system call on a path, in the SDK's terms. The message names the caller's path, never the real one. */
export function fileError(error: unknown, operation: string, path: string): OperationError {
  if (error instanceof OperationError) return error;
  const errno = error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "unknown error";
  const code = CODE_BY_ERRNO[errno] ?? "FILESYSTEM_ERROR";
  const message = code === "FILE_NOT_FOUND" ? `File not found: ${path}` : `${operation} failed for '${path}': ${errno}`;
  return new OperationError(code, message, { path, operation, stderr: errno });
}

/** The refusal to treat a directory as a file. */
export function isDirectoryError(path: string): OperationError {
  return new OperationError("IS_DIRECTORY", `'${path}' is a directory`, { path, operation: "file" });
}
