import { daysHold } from "./days.ts";

daysHold([
  { from: 91, count: 90, workspaces: 100 },
  { from: 191, count: 10, workspaces: 500 },
]);
