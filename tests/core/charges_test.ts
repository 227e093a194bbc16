import { assert, assertEquals } from "@std/assert";
import { type Account, Accounts, type Pot, type PotOptions } from "../../src/server/capacity/account.ts";
import { type Charge, Charges } from "../../src/server/capacity/charges.ts";
import { readLimits } from "../../src/server/capacity/limits.ts";
import { Ticker } from "../../src/core/timers.ts";
import { fakeClock } from "../../src/testing/testing.ts";
import { random } from "../support/random.ts";

const POTS: PotOptions[] = [
  { name: "extensions.bytes", total: 1000, share: 600 },
  { name: "idempotency.bytes", total: 700, share: 500 },
];

function open() {
  const clock = fakeClock();
  const accounts = new Accounts({ limits: readLimits() });
  const [first, second] = POTS.map((options) => accounts.pot(options));
  return { clock, first, second, accounts, charges: new Charges(new Ticker(clock)) };
}

Deno.test("a charge takes an amount of every pot, or of none", () => {
  const { charges, first, second, accounts } = open();
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
  const { charges, clock, first, accounts } = open();
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
  const { clock, charges, first, second, accounts } = open();
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
