// An attack on every pot of three servers, while other clients use them.
import type { PotName } from "../../../src/core/capacity/account.ts";
import { INTERNALS } from "../../../src/core/call/internals.ts";
import { Attackers, type Origin } from "./attackers.ts";
import { Others } from "./others.ts";
import { type Site, startOpen, startProtected, startTenants } from "./sites.ts";

/** The actions of the attackers, and their effect on the other clients. */
export interface Shares {
  /** The number of steps of the attack. */
  readonly steps: number;
  /** The number of checks of the other clients. */
  readonly checks: number;
  /** The losses of the other clients, and the errors that `fetch` threw. */
  readonly lost: readonly string[];
  readonly slowestCallMs: number;
  /**
   * The maximum fill level of each pot in percent, by name. For a pot without a total, the maximum amount that was
   * held.
   */
  readonly fullest: ReadonlyMap<PotName, number>;
}

/** The duration of the attack. */
export interface Duration {
  readonly seconds?: number;
  readonly phases?: number;
}

/** Attacks for a given time or for a number of phases. */
export async function attack(origin: Origin, duration: Duration): Promise<Shares> {
  const sites = [startOpen(), startTenants(), startProtected()];
  const others = sites.map((site) => new Others(site));
  const attackers = sites.map((site) => new Attackers(site, origin));
  const fullest = new Map<PotName, number>();
  for (const each of others) await each.start();
  await runPhases(duration, {
    attack: (phase) => attackers.forEach((each) => each.attack(phase)),
    stop: () => attackers.forEach((each) => each.stop()),
    look: () => sites.forEach((site) => lookAt(site, fullest)),
    check: async () => void await Promise.all(others.map((each) => each.check())),
    isLost: () => others.some(({ lost }) => lost.length > 10),
  });
  for (const each of others) await each.finish();
  for (const { server } of sites) await server.close();
  for (const each of others) await each.end();
  return {
    steps: attackers.reduce((sum, { steps }) => sum + steps, 0),
    checks: others.reduce((sum, { checks }) => sum + checks, 0),
    lost: [...others.flatMap(({ lost }) => lost), ...attackers.flatMap(({ errors }) => errors)],
    slowestCallMs: Math.max(...others.map(({ slowestCallMs }) => slowestCallMs)),
    fullest,
  };
}

interface Parts {
  attack(phase: number): void;
  stop(): void;
  look(): void;
  check(): Promise<void>;
  isLost(): boolean;
}

/** The number of rounds before the check of a phase, so that the pots are full. */
const FILLING = 8;

async function runPhases({ seconds = Infinity, phases = Infinity }: Duration, parts: Parts): Promise<void> {
  const end = performance.now() + seconds * 1000;
  for (let phase = 0; phase < phases && performance.now() < end && !parts.isLost(); phase++) {
    await runPhase(phase, parts);
  }
}

/** The attackers do not wait for the other clients: they continue until the check has ended. */
async function runPhase(phase: number, { attack, stop, look, check }: Parts): Promise<void> {
  let checking: Promise<void> | undefined;
  let isChecked = false;
  for (let round = 0; !isChecked; round++) {
    attack(phase);
    if (round === FILLING) checking = check().finally(() => isChecked = true);
    await new Promise((resolve) => setTimeout(resolve));
    look();
  }
  await checking;
  stop();
}

function lookAt({ server }: Site, fullest: Map<PotName, number>): void {
  for (const { name, used, total } of server[INTERNALS].engine.accounts.pots.values()) {
    const now = total === Infinity ? used : Math.round(100 * used / total);
    fullest.set(name, Math.max(fullest.get(name) ?? 0, now));
  }
}
