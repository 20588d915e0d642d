"""The first tables. Frozen: later changes to the models come as later migrations.

They are written down as for SQLite. PostgreSQL has the same columns: its whole numbers are of 64 bits, as SQLite's are,
its texts as long as they come and compared byte by byte, and what is 0 or 1 there is a truth value of its own.
"""

import re
from typing import Any

_TABLES = """
CREATE TABLE users (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, address VARCHAR(90) NOT NULL,
    ordinals_address VARCHAR(90) NOT NULL, display_name VARCHAR(100), max_exposure INTEGER, max_hardcap INTEGER,
    created_ms INTEGER NOT NULL
);
CREATE UNIQUE INDEX users_address ON users (address);

CREATE TABLE whitelist (
    address VARCHAR(90) NOT NULL PRIMARY KEY, is_admin INTEGER NOT NULL, added_ms INTEGER NOT NULL
);

CREATE TABLE subscriptions (
    user_id INTEGER NOT NULL PRIMARY KEY, plan VARCHAR(50) NOT NULL, started_ms INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL,
    FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);

CREATE TABLE challenges (
    id VARCHAR(36) NOT NULL PRIMARY KEY, address VARCHAR(90) NOT NULL, message TEXT NOT NULL, user_id INTEGER,
    approves TEXT, client_ip VARCHAR(45) NOT NULL, tries INTEGER NOT NULL, expires_ms INTEGER NOT NULL, used_ms INTEGER,
    FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);
CREATE INDEX challenges_address ON challenges (address);
CREATE INDEX challenges_user_id ON challenges (user_id);
CREATE INDEX challenges_expires_ms ON challenges (expires_ms);

CREATE TABLE sessions (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, token_hash VARCHAR(64) NOT NULL, user_id INTEGER NOT NULL,
    client VARCHAR(60) NOT NULL, created_ms INTEGER NOT NULL, used_ms INTEGER NOT NULL,
    FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX sessions_token_hash ON sessions (token_hash);
CREATE INDEX sessions_user_id ON sessions (user_id);

CREATE TABLE budgets (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, user_id INTEGER NOT NULL, name VARCHAR(100) NOT NULL,
    max_open_sats INTEGER NOT NULL, max_fills INTEGER NOT NULL, spend_cap_sats INTEGER NOT NULL,
    spend_cap_per_day_sats INTEGER NOT NULL, created_ms INTEGER NOT NULL,
    FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);
CREATE INDEX budgets_user_id ON budgets (user_id);

CREATE TABLE tasks (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, user_id INTEGER NOT NULL, kind VARCHAR(10) NOT NULL,
    venue VARCHAR(30) NOT NULL, config TEXT NOT NULL, revision INTEGER NOT NULL, desired VARCHAR(10) NOT NULL,
    observed VARCHAR(10) NOT NULL, token INTEGER NOT NULL, pid INTEGER, exit_status VARCHAR(100),
    restarts INTEGER NOT NULL, cycles INTEGER NOT NULL, memory TEXT NOT NULL, error_cycles INTEGER NOT NULL,
    told TEXT NOT NULL, last_cycle_ms INTEGER, last_cycle_action TEXT, last_error TEXT, last_error_code VARCHAR(30),
    last_error_params TEXT, created_ms INTEGER NOT NULL, deleted_ms INTEGER, tags TEXT NOT NULL, type VARCHAR(10),
    slug VARCHAR(200), slug_key VARCHAR(200), inscription_id VARCHAR(80), collection_id VARCHAR(200),
    source_order INTEGER, budget_id INTEGER,
    FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE,
    FOREIGN KEY (budget_id) REFERENCES budgets (id),
    CHECK ((kind = 'bidding') = (type IS NOT NULL AND slug IS NOT NULL AND slug_key IS NOT NULL)),
    CHECK ((kind = 'listing') = (inscription_id IS NOT NULL)),
    CHECK (kind = 'bidding' OR budget_id IS NULL)
);
CREATE INDEX tasks_user_id_kind ON tasks (user_id, kind);
CREATE UNIQUE INDEX tasks_user_slug ON tasks (user_id, slug_key) WHERE (deleted_ms IS NULL);
CREATE UNIQUE INDEX tasks_user_inscription ON tasks (user_id, inscription_id) WHERE (deleted_ms IS NULL);
CREATE INDEX tasks_budget_id ON tasks (budget_id) WHERE (budget_id IS NOT NULL);
CREATE UNIQUE INDEX tasks_source_order ON tasks (source_order)
    WHERE ((source_order IS NOT NULL) AND (deleted_ms IS NULL));

CREATE TABLE api_tokens (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, token_hash VARCHAR(64) NOT NULL, user_id INTEGER NOT NULL,
    name VARCHAR(100) NOT NULL, scopes VARCHAR(30) NOT NULL, task_id INTEGER, created_ms INTEGER NOT NULL,
    used_ms INTEGER, expires_ms INTEGER NOT NULL,
    FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE,
    FOREIGN KEY (task_id) REFERENCES tasks (id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX api_tokens_token_hash ON api_tokens (token_hash);
CREATE INDEX api_tokens_user_id ON api_tokens (user_id);
CREATE INDEX api_tokens_task_id ON api_tokens (task_id);

CREATE TABLE presets (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, user_id INTEGER NOT NULL, name VARCHAR(100) NOT NULL,
    config TEXT NOT NULL, created_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL,
    FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX presets_user_id_name ON presets (user_id, name);

CREATE TABLE cycles (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, task_id INTEGER NOT NULL, time_ms INTEGER NOT NULL,
    action TEXT NOT NULL, error TEXT, detail TEXT NOT NULL
);
CREATE INDEX cycles_task_id ON cycles (task_id);

CREATE TABLE task_samples (
    task_id INTEGER NOT NULL, step INTEGER NOT NULL, minute INTEGER NOT NULL, floor TEXT, reference TEXT,
    best_bid TEXT, own_top TEXT, own_low TEXT, guard_sats INTEGER, open_count INTEGER NOT NULL,
    exposure_sats INTEGER NOT NULL,
    PRIMARY KEY (task_id, step, minute), FOREIGN KEY (task_id) REFERENCES tasks (id) ON DELETE CASCADE
) WITHOUT ROWID;

CREATE TABLE orders (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, intent VARCHAR(32) NOT NULL, task_id INTEGER NOT NULL,
    user_id INTEGER NOT NULL, venue VARCHAR(30) NOT NULL, wallet VARCHAR(90) NOT NULL, slug VARCHAR(200) NOT NULL,
    price_sats INTEGER NOT NULL, quantity VARCHAR(60) NOT NULL, expires_ms INTEGER NOT NULL, token INTEGER NOT NULL,
    state VARCHAR(10) NOT NULL, close_reason VARCHAR(10), venue_id VARCHAR(128), misses INTEGER NOT NULL,
    created_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL, trait_type VARCHAR(200) NOT NULL,
    trait_value VARCHAR(200) NOT NULL, dry_run INTEGER NOT NULL, closed_ms INTEGER, sale_id VARCHAR(100),
    coins TEXT NOT NULL, filled_ms INTEGER, inscription_id VARCHAR(80), floor_at_fill TEXT, network_fee_sats INTEGER,
    receive VARCHAR(90) NOT NULL, autolist_state VARCHAR(10), autolist_reason TEXT, autolist_task INTEGER,
    sold_sats INTEGER, sold_quantity VARCHAR(60), budget_id INTEGER
);
CREATE UNIQUE INDEX orders_intent ON orders (intent);
CREATE UNIQUE INDEX orders_wallet_expires_ms ON orders (wallet, expires_ms);
CREATE INDEX orders_open_task ON orders (task_id, dry_run, price_sats) WHERE (state != 'closed');
CREATE INDEX orders_open_user ON orders (user_id, dry_run, price_sats) WHERE (state != 'closed');
CREATE INDEX orders_open_wallet ON orders (wallet) WHERE (state != 'closed');
CREATE INDEX orders_filled ON orders (task_id, dry_run, closed_ms, price_sats, filled_ms, sold_sats)
    WHERE (close_reason = 'filled');
CREATE INDEX orders_open_budget ON orders (budget_id, dry_run, task_id, price_sats)
    WHERE ((state != 'closed') AND (budget_id IS NOT NULL));
CREATE INDEX orders_filled_budget ON orders (budget_id, dry_run, closed_ms, price_sats)
    WHERE ((close_reason = 'filled') AND (budget_id IS NOT NULL));
CREATE INDEX orders_fills ON orders (user_id, filled_ms, id) WHERE (close_reason = 'filled');
CREATE INDEX orders_user ON orders (user_id, id);
CREATE INDEX orders_user_task ON orders (user_id, task_id, id);
CREATE INDEX orders_to_list ON orders (id) WHERE (autolist_state = 'waiting');
CREATE INDEX orders_bought ON orders (inscription_id)
    WHERE ((close_reason = 'filled') AND (inscription_id IS NOT NULL));
CREATE UNIQUE INDEX orders_sale ON orders (venue, sale_id) WHERE ((sale_id IS NOT NULL) AND (dry_run = 0));
CREATE UNIQUE INDEX orders_dry_sale ON orders (task_id, sale_id) WHERE ((sale_id IS NOT NULL) AND (dry_run = 1));

CREATE TABLE listings (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, intent VARCHAR(64) NOT NULL, task_id INTEGER NOT NULL,
    user_id INTEGER NOT NULL, venue VARCHAR(30) NOT NULL, wallet VARCHAR(90) NOT NULL,
    inscription_id VARCHAR(80) NOT NULL, slug VARCHAR(200), outpoint VARCHAR(75) NOT NULL,
    price_sats INTEGER NOT NULL, token INTEGER NOT NULL, revision INTEGER NOT NULL, state VARCHAR(10) NOT NULL,
    close_reason VARCHAR(10), venue_id VARCHAR(128), misses INTEGER NOT NULL, proceeds_sats INTEGER,
    created_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL, signed_ms INTEGER, listed_ms INTEGER, closed_ms INTEGER,
    sale_id VARCHAR(100), sold_ms INTEGER, venue_fee_sats INTEGER, txid VARCHAR(64)
);
CREATE UNIQUE INDEX listings_intent ON listings (intent);
CREATE UNIQUE INDEX listings_open_task ON listings (task_id) WHERE (state != 'closed');
CREATE UNIQUE INDEX listings_open_outpoint ON listings (outpoint) WHERE (state != 'closed');
CREATE INDEX listings_signed ON listings (outpoint, price_sats) WHERE (signed_ms IS NOT NULL);
CREATE INDEX listings_item ON listings (inscription_id, wallet) WHERE (signed_ms IS NOT NULL);
CREATE INDEX listings_task ON listings (task_id, id);
CREATE INDEX listings_sold ON listings (user_id, sold_ms, id) WHERE (close_reason = 'sold');

CREATE TABLE withdrawals (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, intent VARCHAR(40) NOT NULL, user_id INTEGER NOT NULL,
    source VARCHAR(10) NOT NULL, venue VARCHAR(30), inscription_id VARCHAR(80), destination VARCHAR(90) NOT NULL,
    request TEXT NOT NULL, coins TEXT NOT NULL, sent_sats INTEGER, fee_sats INTEGER, txid VARCHAR(64),
    state VARCHAR(10) NOT NULL, reason VARCHAR(400), created_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL
);
CREATE UNIQUE INDEX withdrawals_intent ON withdrawals (intent);
CREATE INDEX withdrawals_user ON withdrawals (user_id, id);
CREATE INDEX withdrawals_open ON withdrawals (user_id) WHERE (state NOT IN ('confirmed', 'refused'));

CREATE TABLE controls (
    scope VARCHAR(6) NOT NULL, subject_id INTEGER NOT NULL, state VARCHAR(6) NOT NULL, by_user INTEGER,
    set_ms INTEGER NOT NULL,
    PRIMARY KEY (scope, subject_id)
) WITHOUT ROWID;

CREATE TABLE floor_samples (
    kind VARCHAR(10) NOT NULL, slug_key VARCHAR(200) NOT NULL, measure TEXT NOT NULL, minute INTEGER NOT NULL,
    reference TEXT NOT NULL, low TEXT NOT NULL, low_ms INTEGER NOT NULL, high TEXT NOT NULL,
    PRIMARY KEY (kind, slug_key, measure, minute)
) WITHOUT ROWID;
CREATE INDEX floor_samples_minute ON floor_samples (minute);

CREATE TABLE events (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, user_id INTEGER NOT NULL, task_id INTEGER,
    event VARCHAR(20) NOT NULL, at_ms INTEGER NOT NULL, is_passing INTEGER NOT NULL, fact VARCHAR(80),
    data TEXT NOT NULL
);
CREATE INDEX events_user ON events (user_id, id);
CREATE INDEX events_passing ON events (user_id, id) WHERE (is_passing = 1);
CREATE INDEX events_lasting ON events (user_id, id) WHERE ((is_passing = 0) AND (fact IS NULL));
CREATE UNIQUE INDEX events_fact ON events (user_id, fact) WHERE (fact IS NOT NULL);

CREATE TABLE forgotten_events (
    user_id INTEGER NOT NULL PRIMARY KEY, lasting_id INTEGER NOT NULL, passing_id INTEGER NOT NULL
);

CREATE TABLE hooks (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, user_id INTEGER NOT NULL, kind VARCHAR(10) NOT NULL,
    shown VARCHAR(300) NOT NULL, has_secret INTEGER NOT NULL, receiver VARCHAR(32) NOT NULL,
    events VARCHAR(200) NOT NULL, min_interval_s INTEGER NOT NULL, cursor INTEGER NOT NULL,
    is_failing INTEGER NOT NULL, lost INTEGER NOT NULL, sent_ms INTEGER, created_ms INTEGER NOT NULL,
    FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);
CREATE INDEX hooks_user_id ON hooks (user_id);

CREATE TABLE deliveries (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, hook_id INTEGER NOT NULL, event_id INTEGER,
    event VARCHAR(20) NOT NULL, task_id INTEGER, body TEXT NOT NULL, state VARCHAR(10) NOT NULL,
    tries INTEGER NOT NULL, due_ms INTEGER NOT NULL, created_ms INTEGER NOT NULL, done_ms INTEGER, status INTEGER,
    error VARCHAR(200),
    FOREIGN KEY (hook_id) REFERENCES hooks (id) ON DELETE CASCADE
);
CREATE INDEX deliveries_hook ON deliveries (hook_id, id);
CREATE INDEX deliveries_waiting ON deliveries (hook_id, task_id, id) WHERE (state = 'waiting');
CREATE INDEX deliveries_due ON deliveries (due_ms) WHERE (state = 'waiting');
CREATE UNIQUE INDEX deliveries_event ON deliveries (hook_id, event_id) WHERE (event_id IS NOT NULL);

CREATE TABLE inscriptions (
    id VARCHAR(80) NOT NULL PRIMARY KEY, collection_id VARCHAR(200), image_url VARCHAR(500), detail TEXT,
    fetched_ms INTEGER NOT NULL
);

CREATE TABLE month_counts (venue VARCHAR(30) NOT NULL PRIMARY KEY, kept TEXT NOT NULL);

CREATE TABLE leases (
    name VARCHAR(30) NOT NULL PRIMARY KEY, home VARCHAR(100) NOT NULL, machine VARCHAR(100) NOT NULL,
    address VARCHAR(260) NOT NULL, token INTEGER NOT NULL, until_ms INTEGER NOT NULL, seconds INTEGER NOT NULL,
    former_home VARCHAR(100) NOT NULL
);

CREATE TABLE wallet_contents (
    address VARCHAR(90) NOT NULL PRIMARY KEY, items TEXT NOT NULL, fetched_ms INTEGER NOT NULL
);
"""


def up(migrator: Any, db: Any) -> None:
    tables = _TABLES if db.has_rowid else _of_postgresql(_TABLES)
    for statement in tables.split(";\n"):
        if statement.strip():
            db.execute_sql(statement)


_TRUTHS = "is_admin|dry_run|is_passing|has_secret|is_failing"


def _of_postgresql(text: str) -> str:
    text = text.replace(
        "INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT", "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY"
    )
    text = re.sub(rf"\b({_TRUTHS}) INTEGER\b", r"\1 BOOLEAN", text)
    text = re.sub(rf"\b({_TRUTHS}) = ([01])", lambda found: f"{found[1]} = {('FALSE', 'TRUE')[int(found[2])]}", text)
    text = re.sub(r"\bINTEGER\b", "BIGINT", text)
    text = re.sub(r"\b(?:VARCHAR\(\d+\)|TEXT)", 'TEXT COLLATE "C"', text)
    return text.replace(") WITHOUT ROWID", ")")
