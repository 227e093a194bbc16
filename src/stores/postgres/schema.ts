/**
 * The tables and statements of the store in PostgreSQL. Each statement is one transaction, and is safe to repeat.
 *
 * All times are of the clock of the database server. A row whose `due` time has passed counts as missing. An expired log
 * gets a name that no key can have, and a later sweep removes it, because a log can have more entries than one operation
 * can delete.
 *
 * Instances of several versions of the library can use the same schema at once. Therefore a function is never changed:
 * a change needs a function with another number.
 */

/** The statements of a store, for one schema. All parameters and results are texts, booleans or null. */
export interface Statements {
  /** Tests whether the schema is installed. Returns `encoding`, `ready` and `role`. */
  readonly probe: string;
  /** Creates the schema, the tables and the functions. Several processes can do so at once. Several statements. */
  readonly install: string;
  /** Parameters: key. Returns `value` and `version`. */
  readonly get: string;
  readonly getAll: string;
  /** Parameters: prefix, first key after all keys with the prefix, last known key, limit. */
  readonly list: string;
  /** Parameters: log, last known id, limit. Returns a row for each entry, or one row without an entry. */
  readonly read: string;
  /** Parameters: names of logs, separated by commas. */
  readonly heads: string;
  /**
   * Parameters: key, text, token, time to live in milliseconds, mode (`any`, `none` or `is`), required version,
   * milliseconds to wait for a lock. Returns `result`, as do all following statements.
   */
  readonly set: string;
  /** Parameters: key, required version or null, milliseconds to wait for a lock. */
  readonly delete: string;
  /**
   * Parameters: log, text, token, time to live in milliseconds, maximum number of entries, epoch of a new log,
   * milliseconds to wait for a lock. Returns the id.
   */
  readonly append: string;
  /** Parameters: log, id of the oldest entry to keep, milliseconds to wait for a lock. */
  readonly trim: string;
  /** Parameters: maximum number of rows. Returns whether expired rows may be left. */
  readonly sweep: string;
  /** Parameters: channel, text. */
  readonly notify: string;
}

/** Milliseconds to wait for another process that installs the schema. Less than the timeout for connecting. */
const INSTALL_WAIT_MS = 4000;

/** Returns the statements for a schema. `schema` must be a valid identifier. */
export function toStatements(schema: string): Statements {
  const name = `"${schema}"`;
  return {
    probe: `select current_setting('server_encoding') as encoding, exists (
      select from pg_catalog.pg_proc as p join pg_catalog.pg_namespace as n on n.oid = p.pronamespace
      where n.nspname = '${schema}' and p.proname = 'sweep_1') as ready, current_user as role`,
    install: toInstall(schema),
    get: `select value, version from ${name}.stored_values where key = $1 and due > clock_timestamp()`,
    getAll: `select key, value, version from ${name}.stored_values
      where key = any (string_to_array($1, ',')) and due > clock_timestamp()`,
    list: `select key, value, version from ${name}.stored_values
      where key >= $1 and key < $2 and key > $3 and due > clock_timestamp() order by key limit $4::bigint`,
    read: `select l.first, l.last, l.epoch, e.id, e.value from ${name}.logs as l left join lateral (
        select id, value from ${name}.log_entries
        where epoch = l.epoch and id >= greatest(l.first, $2::bigint + 1) order by id limit $3::bigint
      ) as e on true where l.log = $1 and l.due > clock_timestamp() order by e.id`,
    heads: `select log, first, last, epoch from ${name}.logs
      where log = any (string_to_array($1, ',')) and due > clock_timestamp()`,
    set: `select ${name}.set_1($1, $2, $3, $4::bigint, $5, $6, $7) as result`,
    delete: `select ${name}.delete_1($1, $2, $3) as result`,
    append: `select ${name}.append_1($1, $2, $3, $4::bigint, $5::bigint, $6, $7) as result`,
    trim: `select ${name}.trim_1($1, $2::bigint, $3) as result`,
    sweep: `select ${name}.sweep_1($1::bigint) as result`,
    notify: "select pg_notify($1, $2)",
  };
}

function toInstall(schema: string): string {
  const name = `"${schema}"`;
  const toTime = "clock_timestamp() + _ttl * interval '1 millisecond'";
  return `
select set_config('client_min_messages', 'warning', true), set_config('lock_timeout', '${INSTALL_WAIT_MS}', true);
select pg_advisory_xact_lock(hashtextextended('@x/mcp install ${schema}', 0));

do $do$ begin
  if to_regnamespace('${name}') is null then create schema ${name}; end if;
end $do$;

create table if not exists ${name}.stored_values (
  key text collate "C" primary key, value text not null, version text not null, due timestamptz not null
);
create index if not exists stored_values_due on ${name}.stored_values (due);
create table if not exists ${name}.logs (
  log text collate "C" primary key, epoch text not null, first bigint not null, last bigint not null,
  due timestamptz not null
);
create index if not exists logs_due on ${name}.logs (due);
create table if not exists ${name}.log_entries (
  epoch text collate "C", id bigint, token text collate "C" not null, value text not null, primary key (epoch, id)
);
create unique index if not exists log_entries_token on ${name}.log_entries (epoch, token);

create or replace function ${name}.set_1(
  _key text, _value text, _token text, _ttl bigint, _mode text, _version text, _wait text
) returns boolean language plpgsql as $body$
begin
  perform set_config('lock_timeout', _wait, true);
  if _mode = 'is' then
    update ${name}.stored_values set value = _value, version = _token, due = ${toTime}
      where key = _key and version = _version and version <> _token and due > clock_timestamp();
  else
    insert into ${name}.stored_values as known values (_key, _value, _token, ${toTime})
      on conflict (key) do update set value = excluded.value, version = excluded.version, due = excluded.due
      where known.due <= clock_timestamp() or _mode = 'any' and known.version <> _token;
  end if;
  return found or exists (
    select from ${name}.stored_values where key = _key and version = _token and due > clock_timestamp()
  );
end $body$;

create or replace function ${name}.delete_1(_key text, _version text, _wait text)
returns boolean language plpgsql as $body$
begin
  perform set_config('lock_timeout', _wait, true);
  delete from ${name}.stored_values
    where key = _key and (_version is null or version = _version or due <= clock_timestamp());
  return found or not exists (select from ${name}.stored_values where key = _key and due > clock_timestamp());
end $body$;

create or replace function ${name}.append_1(
  _log text, _value text, _token text, _ttl bigint, _max bigint, _epoch text, _wait text
) returns bigint language plpgsql as $body$
declare
  head ${name}.logs;
begin
  perform set_config('lock_timeout', _wait, true);
  loop
    -- The row lock orders concurrent appends to the log until they are committed.
    update ${name}.logs set last = last + 1, due = ${toTime} where log = _log and due > clock_timestamp()
      returning * into head;
    exit when found;
    update ${name}.logs set log = '~' || epoch where log = _log and due <= clock_timestamp();
    insert into ${name}.logs values (_log, _epoch, 1, 1, ${toTime}) on conflict (log) do nothing returning * into head;
    exit when found;
  end loop;
  insert into ${name}.log_entries values (head.epoch, head.last, _token, _value) on conflict (epoch, token) do nothing;
  if not found then
    update ${name}.logs set last = last - 1 where log = _log;
    return (select id from ${name}.log_entries where epoch = head.epoch and token = _token);
  end if;
  if head.last - _max >= head.first then
    update ${name}.logs set first = head.last - _max + 1 where log = _log;
    delete from ${name}.log_entries where epoch = head.epoch and id between head.first and head.last - _max;
  end if;
  return head.last;
end $body$;

create or replace function ${name}.trim_1(_log text, _before bigint, _wait text)
returns boolean language plpgsql as $body$
declare
  head ${name}.logs;
  kept bigint;
begin
  perform set_config('lock_timeout', _wait, true);
  select * into head from ${name}.logs where log = _log and due > clock_timestamp() for update;
  kept := least(_before, head.last + 1);
  if kept > head.first then
    update ${name}.logs set first = kept where log = _log;
    delete from ${name}.log_entries where epoch = head.epoch and id between head.first and kept - 1;
  end if;
  return true;
end $body$;

create or replace function ${name}.sweep_1(_max bigint) returns boolean language plpgsql as $body$
declare
  since timestamptz := clock_timestamp();
  dead record;
  deleted bigint;
  remaining bigint := _max;
begin
  -- Only one process sweeps at a time.
  if not pg_try_advisory_xact_lock(hashtextextended('@x/mcp sweep ${schema}', 0)) then return false; end if;
  with old as (
    select key from ${name}.stored_values where due <= since order by due limit remaining for update skip locked
  ) delete from ${name}.stored_values as v using old where v.key = old.key;
  get diagnostics deleted = row_count;
  remaining := remaining - deleted;
  while remaining > 0 loop
    select log, epoch into dead from ${name}.logs where due <= since order by due limit 1 for update skip locked;
    exit when not found;
    delete from ${name}.log_entries where epoch = dead.epoch and id in (
      select id from ${name}.log_entries where epoch = dead.epoch limit remaining
    );
    get diagnostics deleted = row_count;
    remaining := remaining - deleted - 1;
    if remaining >= 0 then delete from ${name}.logs where log = dead.log; end if;
  end loop;
  return remaining <= 0;
end $body$;
`;
}
