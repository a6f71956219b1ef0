/** Fires the Worker's cron as the platform would: every minute, the first at once, whether or not the last one has ended. */

const CRON_PATH = "/cdn-cgi/handler/scheduled?cron=*+*+*+*+*";
const MINUTE_MS = 60_000;

/** One tick; resolves when its handler has ended, with whether it ended well. */
export async function fireCron(url: string): Promise<boolean> {
  const answer = await fetch(`${url}${CRON_PATH}`).catch(() => null);
  return answer?.ok ?? false;
}

/** Answers the function that ends it. */
export function startCron(url: string, onFailure: () => void): () => void {
  let stopped = false;
  const fire = async () => {
    const ended = await fireCron(url);
    if (!ended && !stopped) onFailure();
  };
  void fire();
  const timer = setInterval(() => void fire(), MINUTE_MS);
  return () => {
    stopped = true;
    clearInterval(timer);
  };
}
