import { daysHold } from "./days.ts";

daysHold([
  { from: 1, count: 90, workspaces: 100 },
  { from: 181, count: 10, workspaces: 500 },
]);
