// Attacks every shared limit ("pot") of three servers while other clients use the servers.
import type { PotName } from "../../../src/server/capacity/account.ts";
import { INTERNALS } from "../../../src/core/internals.ts";
import { Attackers, type Origin } from "./attackers.ts";
import { Others } from "./others.ts";
import { type Site, startOpen, startProtected, startTenants } from "./sites.ts";

/** What the attackers did, and how it affected the other clients. */
export interface Shares {
  /** The number of steps that the attackers took. */
  readonly steps: number;
  /** The number of checks that the other clients made. */
  readonly checks: number;
  /** The losses of the other clients, and the errors that `fetch` threw. */
  readonly lost: readonly string[];
  readonly slowestCallMs: number;
  /**
   * By account name, the maximum fill level of the account in percent, or the maximum amount if the account has no
   * total limit.
   */
  readonly fullest: ReadonlyMap<PotName, number>;
}

/** The duration of the attack, in seconds or in phases. */
export interface Duration {
  readonly seconds?: number;
  readonly phases?: number;
}

/** Attacks all servers for a given time or for a number of phases. */
export async function attack(origin: Origin, duration: Duration): Promise<Shares> {
  const sites = [startOpen(), startTenants(), startProtected()];
  const others = sites.map((site) => new Others(site));
  const attackers = sites.map((site) => new Attackers(site, origin));
  const fullest = new Map<PotName, number>();
  for (const each of others) await each.start();
  await runPhases(duration, {
    attack: (phase) => attackers.forEach((each) => each.attack(phase)),
    stop: () => attackers.forEach((each) => each.stop()),
    holdStores: () => {
      const releases = sites.map(({ holdStore }) => holdStore?.());
      return () => releases.forEach((release) => release?.());
    },
    look: () => sites.forEach((site) => lookAt(site, fullest)),
    check: async () => void await Promise.all(others.map((each) => each.check())),
    isLost: () => others.some(({ lost }) => lost.length > 10),
  });
  for (const each of others) await each.finish();
  for (const { server } of sites) await server.close();
  for (const { remote } of sites) await remote.close();
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
  /** Holds the responses of all stores until the returned function is called. */
  holdStores(): () => void;
  look(): void;
  check(): Promise<void>;
  isLost(): boolean;
}

/** Number of rounds before the check in each phase, after which the accounts are full. */
const FILLING = 8;
/** Number of rounds before the stores respond, so that operations wait on a slow machine too. */
const HELD = 4;

async function runPhases({ seconds = Infinity, phases = Infinity }: Duration, parts: Parts): Promise<void> {
  const end = performance.now() + seconds * 1000;
  for (let phase = 0; phase < phases && performance.now() < end && !parts.isLost(); phase++) {
    await runPhase(phase, parts);
  }
}

/** Runs one phase. The attackers continue until the check of the other clients has ended. */
async function runPhase(phase: number, { attack, stop, holdStores, look, check }: Parts): Promise<void> {
  const release = holdStores();
  let checking: Promise<void> | undefined;
  let isChecked = false;
  for (let round = 0; !isChecked; round++) {
    attack(phase);
    if (round === HELD) release();
    if (round === FILLING) checking = check().finally(() => isChecked = true);
    await new Promise((resolve) => setTimeout(resolve));
    look();
  }
  await checking;
  stop();
}

function lookAt({ server }: Site, fullest: Map<PotName, number>): void {
  for (const { name, used, total } of server[INTERNALS].engine.accounts.pots.values()) {
    // A client's share of a large total is less than half a percent.
    const now = total === Infinity || !used ? used : Math.max(1, Math.round(100 * used / total));
    fullest.set(name, Math.max(fullest.get(name) ?? 0, now));
  }
}
