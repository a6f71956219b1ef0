/** Waiting with a limit. */

/** True once `work` has settled either way, false where `limitMs` passed first. Never rejects. */
export async function settledWithin(work: Promise<unknown>, limitMs: number): Promise<boolean> {
  const settled = work.then(
    () => true,
    () => true,
  );
  return orAfter(settled, limitMs, false);
}

/** What `work` was rejected with by then; undefined where it was not. Never rejects. */
export async function rejectionWithin(work: Promise<unknown>, limitMs: number): Promise<unknown> {
  const rejection = work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  return orAfter(rejection, limitMs, undefined);
}

/** Looks at `condition` every `intervalMs` until it holds or `limitMs` has passed; tells whether it holds. */
export async function holdsWithin(condition: () => boolean, limitMs: number, intervalMs: number): Promise<boolean> {
  const end = Date.now() + limitMs;
  while (!condition()) {
    const left = end - Date.now();
    if (left <= 0) return false;
    await new Promise((resolve) => setTimeout(resolve, Math.min(intervalMs, left)));
  }
  return true;
}

async function orAfter<T>(work: Promise<T>, limitMs: number, otherwise: T): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const timeUp = new Promise<T>((resolve) => {
    timer = setTimeout(() => resolve(otherwise), limitMs);
  });
  try {
    return await Promise.race([work, timeUp]);
  } finally {
    clearTimeout(timer);
  }
}
