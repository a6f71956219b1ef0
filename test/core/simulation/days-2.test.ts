import { daysHold } from "./days.ts";

daysHold([
  { from: 71, count: 70, workspaces: 100 },
  { from: 148, count: 7, workspaces: 500 },
]);
