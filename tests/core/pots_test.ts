import { assert, assertEquals } from "@std/assert";
import { type Account, Accounts, type Holding, type Pot, type PotOptions } from "../../src/server/capacity/account.ts";
import { type LimitOptions, readLimits } from "../../src/server/capacity/limits.ts";
import { type Charge, Charges } from "../../src/server/capacity/charges.ts";
import { Ticker } from "../../src/core/timers.ts";
import { fakeClock } from "../../src/testing/testing.ts";
import { random } from "../support/random.ts";

const KIB = 1024;

function open(limits: LimitOptions = {}): Accounts {
  return new Accounts({ limits: readLimits(limits) });
}

/** Holds an amount for a client. If the amount is evicted, the client's name is added to `lost`. */
function keep(pot: Pot, account: Account, lost: string[], amount = 1): Holding | undefined {
  return pot.keep(account, amount, () => lost.push(account.key ?? "") > 0);
}

Deno.test("a quarter of a total is a reserve for clients that hold little", () => {
  const accounts = open({ memory: { bytes: 4000 * KIB, bytesPerClient: 4000 * KIB } });
  const [large, small] = [accounts.find("principal large"), accounts.find("principal small")];
  assert(large.hold(3000 * KIB));
  assert(!large.hold(1));
  assert(small.hold(256 * KIB));
  assert(!small.hold(1), "a client that held more than 256 KiB could use the reserve");
  small.free(1);
  assert(small.hold(1));
});

for (
  const [name, use] of [
    ["two streams", (account: Account) => [account.openStream(() => false), account.openStream(() => false)]],
    ["two calls", (account: Account) => [account.start(), account.start()]],
    ["257 KiB", (account: Account) => account.hold(257 * KIB)],
  ] as const
) {
  Deno.test(`a client with ${name} cannot use the reserve of any pot`, () => {
    const accounts = open({ connections: { streams: 8 }, memory: { bytes: 8000 * KIB } });
    const client = accounts.find("principal b");
    use(client);
    accounts.streams.add(accounts.find("principal a"), accounts.streams.common - accounts.streams.used);
    accounts.memory.add(accounts.find("principal a"), accounts.memory.common - accounts.memory.used);
    assertEquals([client.openStream(() => false), client.hold(1)], [undefined, false]);
    const other = accounts.find("principal c");
    assert(other.hold(1) && other.openStream(() => false));
  });
}

Deno.test("if the reserve is full, the client that was idle longest is evicted first, and an entry in use is never evicted", () => {
  const accounts = open({ connections: { streams: 8, streamsPerClient: 8 } });
  const lost: string[] = [];
  const big = accounts.find("principal big");
  for (let i = 0; i < 6; i++) assert(keep(accounts.streams, big, lost));
  assert(!keep(accounts.streams, big, lost));
  const busy = accounts.find("principal busy").openStream(() => false);
  const idle = keep(accounts.streams, accounts.find("principal idle"), lost);
  assert(busy && idle);
  assert(keep(accounts.streams, accounts.find("principal new"), lost));
  assertEquals(lost, ["principal idle"]);
  assert(keep(accounts.streams, accounts.find("principal newer"), lost));
  assertEquals(lost, ["principal idle", "principal new"]);
  assertEquals(accounts.streams.used, 8);
});

Deno.test("the most recently used entry is evicted last", () => {
  const accounts = open({ connections: { streams: 4 } });
  const lost: string[] = [];
  const all = ["a", "b", "c", "d"].map((name) => keep(accounts.streams, accounts.find(name), lost));
  all[0]?.touch();
  keep(accounts.streams, accounts.find("e"), lost);
  assertEquals(lost, ["b"]);
});

Deno.test("a /56 network has twice the share of one client, and counts as one client in the reserve", () => {
  const accounts = open({ connections: { streams: 64, streamsPerClient: 8 } });
  const at = (net: number, sub: number) => accounts.find(`peer 2001:db8:${net}:${(0x1200 + sub).toString(16)}`);
  let opened = 0;
  for (let sub = 0; sub < 256; sub++) if (at(1, sub).openStream(() => false)) opened++;
  assertEquals(opened, 16);
  // Sixteen networks fill the common part, and each further network has one place in the reserve.
  for (let net = 2; net <= 16; net++) for (let sub = 0; sub < 256; sub++) at(net, sub).openStream(() => false);
  assertEquals(accounts.streams.used, 48 + 13);
  assert(accounts.find("peer 192.0.2.1").openStream(() => false));
  assert(accounts.find("peer 2001:db8:99:1").openStream(() => false));
  assert(accounts.find("principal ada").openStream(() => false));
});

Deno.test("clients in different /56 networks have separate limits", () => {
  const accounts = open({ connections: { streamsPerClient: 1 } });
  const opened = ["12ff", "1200", "1234", "1300", "11ff", "0", "ff", "100"].map((sub) =>
    !!accounts.find(`peer 2001:db8:0:${sub}`).openStream(() => false)
  );
  assertEquals(opened, [true, true, false, true, true, true, true, true]);
});

Deno.test("all clients without a key share one place in the reserve", () => {
  const accounts = open({ connections: { streams: 8 } });
  const opened = Array.from({ length: 20 }, () => accounts.find().openStream(() => false)).filter(Boolean);
  assertEquals(opened.length, 6);
  assert(accounts.find("principal ada").openStream(() => false));
  assert(accounts.find("principal bob").openStream(() => false));
});

Deno.test("a full cache evicts the least recently used entry of the client that holds most", () => {
  const accounts = open();
  const cache = accounts.pot({ name: "calls.waiting", total: 10, isCache: true });
  const lost: string[] = [];
  const [greedy, ada, bob] = ["greedy", "ada", "bob"].map((name) => accounts.find(name));
  assert(keep(cache, ada, lost, 2));
  for (let i = 0; i < 20; i++) assert(keep(cache, greedy, lost));
  assertEquals(new Set(lost), new Set(["greedy"]));
  assert(keep(cache, bob, lost, 3));
  assertEquals([new Set(lost), cache.used], [new Set(["greedy"]), 10]);
  assertEquals([ada.amount(cache), bob.amount(cache)], [2, 3]);
  assert(!keep(cache, bob, lost, 11), "an entry larger than the whole cache was stored");
});

Deno.test("a holding can grow and shrink, and can be released only once", () => {
  const accounts = open();
  const cache = accounts.pot({ name: "calls.waiting", total: 10, isCache: true });
  const ada = accounts.find("ada");
  const holding = cache.keep(ada, 4, () => true);
  assert(holding);
  assert(holding.grow(6));
  holding.add(-3);
  assertEquals(cache.used, 7);
  assert(!holding.grow(4), "the holding itself was not evicted");
  assertEquals([cache.used, ada.amount(cache)], [0, 0]);
  holding.end();
  holding.add(5);
  assertEquals(cache.used, 0);
});

Deno.test("accounts of clients that hold nothing are deleted", () => {
  const accounts = open();
  for (let i = 0; i < 1000; i++) {
    const account = accounts.find(`peer 2001:db8:${i.toString(16)}:1`, i % 2 ? "/t/a" : undefined);
    assert(account.enter(10));
    account.start();
    account.finish();
    account.leave(10);
    account.openStream(() => false)?.end();
  }
  assertEquals(accounts.known.size, 0);
});

const POTS: PotOptions[] = [
  { name: "extensions.bytes", total: 1000, share: 600 },
  { name: "idempotency.bytes", total: 700, share: 500 },
];

function openCharges() {
  const clock = fakeClock();
  const accounts = new Accounts({ limits: readLimits() });
  const [first, second] = POTS.map((options) => accounts.pot(options));
  return { clock, first, second, accounts, charges: new Charges(new Ticker(clock)) };
}

Deno.test("a charge takes an amount of every pot, or of none", () => {
  const { charges, first, second, accounts } = openCharges();
  const ada = accounts.find("principal ada");
  const charge = charges.keep(ada, [[first, 100], [second, 450]]);
  assert(charge);
  assertEquals(charges.keep(ada, [[first, 1], [second, 51]]), undefined);
  assertEquals(charge.grow(51), false);
  assertEquals(charge.resize(600), false);
  assertEquals([first.used, second.used], [100, 450]);
  charge.end();
  charge.end();
  assertEquals([first.used, second.used, ada.amount(first)], [0, 0, 0]);
});

Deno.test("an evicted charge releases all its amounts, and calls drop once", async () => {
  const { charges, clock, first, accounts } = openCharges();
  const cache = accounts.pot({ name: "handler.cacheBytes", of: "test", total: 100, isCache: true });
  const dropped: string[] = [];
  // The charge may end in `drop`, as that of a cache does.
  const keep = (name: string, isEnded: boolean) => {
    const charge = charges.keep(accounts.find("principal ada"), [[first, 60], [cache, 60]], {
      ttlMs: 1000,
      drop: () => {
        dropped.push(name);
        if (isEnded) charge?.end();
        return true;
      },
    });
    return charge;
  };
  for (const [name, isEnded] of [["a", true], ["b", false], ["c", false]] as const) assert(keep(name, isEnded));
  assertEquals(dropped, ["a", "b"]);
  assertEquals([first.used, cache.used], [60, 60]);
  await clock.advance(3000);
  assertEquals(dropped, ["a", "b", "c"]);
  assertEquals([first.used, cache.used], [0, 0]);
});

Deno.test("charges expire on time, and never release an amount that a client still uses", async () => {
  for (let seed = 1; seed <= 20; seed++) await compare(seed);
});

interface Known {
  readonly charge: Charge;
  readonly account: Account;
  amounts: [number, number];
  until: number;
}

// Random operations, compared with a list of what each charge should hold.
async function compare(seed: number): Promise<void> {
  const { below } = random(seed);
  const { clock, charges, first, second, accounts } = openCharges();
  const clients = ["ada", "bob", "eve"].map((name) => accounts.find(`principal ${name}`));
  let all: Known[] = [];
  const sum = (at: 0 | 1, account?: Account) =>
    all.reduce((sum, known) => sum + (!account || known.account === account ? known.amounts[at] : 0), 0);
  const toExpiry = (ttlMs: number) => {
    const step = ttlMs > 60_000 ? 60_000 : 1000;
    return Math.ceil((clock.now() + ttlMs) / step) * step;
  };
  for (let left = 200; left; left--) {
    const known = all[below(all.length || 1)];
    const amount = below(120);
    switch (below(5)) {
      case 0: {
        const account = clients[below(3)];
        const ttlMs = [undefined, below(50_000), 60_000 + below(200_000)][below(3)];
        const charge = charges.keep(account, [[first, amount], [second, 2 * amount]], { ttlMs });
        const until = ttlMs === undefined ? Infinity : toExpiry(ttlMs);
        if (charge) all.push({ charge, account, amounts: [amount, 2 * amount], until });
        break;
      }
      case 1:
        if (known?.charge.grow(amount)) known.amounts = [known.amounts[0] + amount, known.amounts[1] + amount];
        break;
      case 2:
        if (!known) break;
        known.charge.expireIn(10_000);
        known.until = toExpiry(10_000);
        break;
      case 3:
        known?.charge.end();
        all = all.filter((each) => each !== known);
        break;
      default:
        await clock.advance(below(40_000));
        all = all.filter(({ until }) => until > clock.now());
    }
    assertEquals([first.used, second.used], [sum(0), sum(1)], `seed ${seed}`);
    for (const account of clients) check(account, first, sum(0, account), seed);
  }
}

function check(account: Account, pot: Pot, expected: number, seed: number): void {
  assertEquals(account.amount(pot), expected, `seed ${seed}`);
  assert(account.amount(pot) <= pot.share, `seed ${seed}`);
}
