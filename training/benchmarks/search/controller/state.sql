-- The state of a search; ledger.py says how it is kept. Times are seconds of the search's clock (clock.py), text of
-- more than one value is JSON of the protocol's records.

CREATE TABLE search (
    name TEXT NOT NULL,              -- of this search, the same at every start of the controller
    settings TEXT NOT NULL,          -- another start must have the same
    boot TEXT NOT NULL,              -- which start of the machine `zero_s` is of
    zero_s REAL NOT NULL,            -- of the machine's clock, where the search's stood at 0
    began_s REAL NOT NULL,           -- of the wall clock at that moment: for a machine that was started since
    seen_s REAL NOT NULL,            -- when there was a controller last
    away_s REAL NOT NULL,            -- for how long there was none
    starts INTEGER NOT NULL,         -- of the controller
    data TEXT,                       -- what the workers train on; since the first has registered
    precision TEXT,                  -- and what they train in
    changes INTEGER NOT NULL,        -- of proposals, until now
    end_reason TEXT                  -- since it is over
);

CREATE TABLE proposals (
    proposal INTEGER PRIMARY KEY,
    digest TEXT NOT NULL UNIQUE,     -- of the architecture: none is tried twice
    state TEXT NOT NULL,             -- queued, handed or ended
    trial INTEGER UNIQUE,            -- since it was handed out first
    accuracy REAL,                   -- the best of its last attempt
    change INTEGER NOT NULL,         -- the last one of it
    proposer INTEGER,                -- the worker; none of the controller's own
    told TEXT NOT NULL,              -- what workers that propose are told of it: an Evaluation
    facts TEXT NOT NULL,             -- what the controller computed of it
    proposed TEXT NOT NULL           -- as it was sent; the longest, and so the last
);
CREATE INDEX proposals_by_state ON proposals (state, proposal);
CREATE INDEX proposals_by_change ON proposals (change);

CREATE TABLE sessions (
    worker INTEGER NOT NULL,
    number INTEGER NOT NULL,         -- of the worker's sessions, from 1
    session TEXT NOT NULL,
    start INTEGER NOT NULL,
    state TEXT NOT NULL,             -- live, lost or left
    node_rank INTEGER NOT NULL,
    ranks INTEGER NOT NULL,
    registered_s REAL NOT NULL,
    waited_s REAL NOT NULL,          -- for trials, in this session
    failures INTEGER NOT NULL,       -- trials that failed one after the other
    PRIMARY KEY (worker, number)
);
CREATE INDEX sessions_by_state ON sessions (state);

CREATE TABLE trials (
    trial INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    proposal INTEGER NOT NULL,
    worker INTEGER NOT NULL,
    round INTEGER NOT NULL,
    epochs INTEGER NOT NULL,         -- at most
    state TEXT NOT NULL,             -- open, or as its TRIAL_END says
    answered_s REAL NOT NULL,        -- when the worker was answered about it last
    epoch INTEGER NOT NULL,          -- that ended last
    accuracy REAL,                   -- the best so far
    PRIMARY KEY (trial, attempt)
);
CREATE UNIQUE INDEX open_trials ON trials (worker) WHERE state = 'open';

CREATE TABLE epochs (
    trial INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    message TEXT NOT NULL,           -- the one that told of it first
    PRIMARY KEY (trial, attempt, epoch)
);

CREATE TABLE events (
    sequence INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    time_ms INTEGER NOT NULL,        -- of the wall clock
    value TEXT NOT NULL
);
