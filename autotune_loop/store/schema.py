"""The tables of `tuning.db` that every run has, and where schedules' time goes, which only some look at."""

from __future__ import annotations

# What a candidate is timed for, one after the other: the timings for the last of these that it has say what it takes.
CANDIDATE_PURPOSES = ("sample", "race", "confirmation")
SCHEMA = """
CREATE TABLE IF NOT EXISTS candidates (
    candidate INTEGER PRIMARY KEY, round INTEGER NOT NULL, task INTEGER NOT NULL, sample INTEGER NOT NULL,
    symbol TEXT NOT NULL UNIQUE, origin TEXT NOT NULL, seed INTEGER, beam_size INTEGER,
    random_dropout INTEGER, weights_noise REAL, parameters TEXT, lineage TEXT, schedule_sha256 TEXT NOT NULL,
    predicted_ms REAL, search_s REAL NOT NULL, at_unix_s REAL NOT NULL);
CREATE TABLE IF NOT EXISTS builds (
    symbol TEXT NOT NULL, build_s REAL NOT NULL, object_bytes INTEGER NOT NULL, at_unix_s REAL NOT NULL);
CREATE TABLE IF NOT EXISTS measurements (
    symbol TEXT NOT NULL, purpose TEXT NOT NULL, device TEXT NOT NULL, clock TEXT NOT NULL,
    median_ms REAL NOT NULL, minimum_ms REAL NOT NULL, spread_ms REAL NOT NULL, repetitions_s TEXT NOT NULL,
    stopped_by TEXT NOT NULL, output_checked INTEGER NOT NULL, device_held_s REAL NOT NULL,
    factor REAL NOT NULL, canary_s TEXT NOT NULL, disturbed TEXT NOT NULL, beside TEXT NOT NULL,
    relative REAL, reference_ms REAL, machine TEXT NOT NULL, at_unix_s REAL NOT NULL);
CREATE TABLE IF NOT EXISTS yardsticks (
    task INTEGER NOT NULL, symbol TEXT NOT NULL, device TEXT NOT NULL, reference_ms REAL NOT NULL,
    relative REAL NOT NULL, log_error REAL NOT NULL, at_unix_s REAL NOT NULL);
CREATE TABLE IF NOT EXISTS failures (
    symbol TEXT, stage TEXT NOT NULL, reason TEXT NOT NULL, message TEXT NOT NULL, log TEXT NOT NULL,
    round INTEGER NOT NULL, task INTEGER NOT NULL, seed INTEGER, at_unix_s REAL NOT NULL);
CREATE TABLE IF NOT EXISTS incidents (
    symbol TEXT NOT NULL, device TEXT NOT NULL, trouble TEXT NOT NULL, message TEXT NOT NULL,
    under_way INTEGER NOT NULL, at_unix_s REAL NOT NULL);
CREATE TABLE IF NOT EXISTS calibrations (
    task INTEGER NOT NULL, device TEXT NOT NULL, epoch TEXT NOT NULL, factor REAL NOT NULL, spread REAL NOT NULL,
    noise REAL NOT NULL, schedules INTEGER NOT NULL, furthest TEXT NOT NULL, fits INTEGER NOT NULL,
    times_ms TEXT NOT NULL, at_unix_s REAL NOT NULL);
CREATE TABLE IF NOT EXISTS device_states (
    device TEXT NOT NULL, moment TEXT NOT NULL, state TEXT NOT NULL, at_unix_s REAL NOT NULL);
CREATE TABLE IF NOT EXISTS weights (
    round INTEGER NOT NULL, sha256 TEXT NOT NULL, accepted INTEGER NOT NULL, reason TEXT NOT NULL,
    report TEXT NOT NULL, at_unix_s REAL NOT NULL);
CREATE TABLE IF NOT EXISTS verdicts (
    task INTEGER NOT NULL, verdict TEXT NOT NULL, at_unix_s REAL NOT NULL);
CREATE TABLE IF NOT EXISTS published (
    task INTEGER NOT NULL, header_sha256 TEXT NOT NULL, published TEXT NOT NULL, at_unix_s REAL NOT NULL);
CREATE TABLE IF NOT EXISTS batches (
    round INTEGER NOT NULL, task INTEGER NOT NULL, stages_s TEXT NOT NULL, at_unix_s REAL NOT NULL);
"""
FUNC_SHARES = "func_shares"
FUNC_SHARES_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS {FUNC_SHARES} (symbol TEXT NOT NULL, shares TEXT NOT NULL, at_unix_s REAL NOT NULL)"""
