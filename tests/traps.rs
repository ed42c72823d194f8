//! The traps of running a process inside somebody else's, each with the test that proves that we are not in it, or with
//! the reason why no test does.
//!
//! The table cannot rot: every file and every test that it names must be there.

#[path = "support/proofs.rs"]
mod proofs;

use proofs::Proof::{self, Because, Test};
use std::collections::BTreeSet;

const SUPERVISION: &str = "tests/supervision.rs";
const SPAWN: &str = "src/sys/spawn/tests.rs";
const CHILD: &str = "src/sys/child/tests.rs";
const SCAN: &str = "src/sys/scan/tests.rs";
const DIR: &str = "src/sys/dir/tests.rs";
const GUEST: &str = "tests/c/guest.c";
const MANNERS: &str = "tests/c/manners.c";
const ENVIRONMENT: &str = "tests/environment.rs";
const OUTPUT: &str = "tests/output.rs";
const RESULT: &str = "tests/result.rs";
const HANDLES: &str = "tests/handles.rs";
const WIRE: &str = "tests/wire.rs";

const TRAPS: &[(&str, &str, &[Proof])] = &[
    // ---- making the child ----
    ("A1", "fork costs what the host is large", &[Because("a matter of time: the rows `spawn` of examples/bench.rs, with the host at 4 GiB over 50 MiB")]),
    ("A2", "locks of a host with threads are held for ever in a fork", &[Test(SPAWN, "many_threads_start_children_at_once_and_each_gets_its_own"), Test(GUEST, "sixty_four_threads")]),
    ("A3", "the host's handlers run in the child on shared memory", &[Test(GUEST, "signal_storm"), Test(SPAWN, "signals_are_at_their_defaults_and_the_hosts_mask_stays_as_it_was")]),
    ("A4", "errno is lost where vfork is emulated", &[Test(SPAWN, "a_step_that_fails_is_named_and_leaves_no_process")]),
    ("A5", "clone is refused", &[Test(SPAWN, "a_program_gets_its_arguments_environment_and_directory_and_nothing_to_read")]),
    ("A6", "the child changes state that it shares with the host", &[Test(GUEST, "plain"), Test(MANNERS, "the_state_of_the_process_is_untouched"), Test("tests/sandbox.rs", "the_host_stays_as_it_was")]),
    ("A7", "exec blocks on a slow file system", &[Because("needs a file system that hangs; no lock is held meanwhile, and other runs have threads of their own")]),
    ("A8", "the child fails or dies before exec", &[Test(SPAWN, "a_step_that_fails_is_named_and_leaves_no_process"), Test(SPAWN, "a_child_that_dies_on_the_way_is_an_error_that_names_the_step")]),
    ("A9", "exec's errno misleads", &[Test(SPAWN, "the_reason_why_a_program_cannot_be_executed_is_found_out")]),
    ("A10", "an argument or a variable is too large", &[Test(SPAWN, "an_environment_that_is_too_big_names_the_variable_and_not_its_value")]),
    ("A11", "a NUL byte in code, path or environment", &[Test("tests/input.rs", "a_nul_byte_is_refused_with_its_place"), Test("src/config/tests.rs", "bad_options_name_their_path")]),
    ("A12", "the host has closed its standard streams", &[Test(GUEST, "closed_streams"), Test("src/sys/fd.rs", "every_descriptor_is_close_on_exec_and_above_the_standard_streams")]),
    ("A13", "the host's descriptors leak into the script", &[Test(GUEST, "leaky_descriptors"), Test(SPAWN, "no_descriptor_of_the_host_is_inherited")]),
    ("A14", "our descriptors leak into the host's other children", &[Test(MANNERS, "every_descriptor_closes_on_exec")]),
    ("A15", "the host forks without exec", &[Test(GUEST, "forked_host"), Test("tests/c/forked.c", "a_busy_host_may_fork")]),
    ("A16", "blocked signals are inherited", &[Test(GUEST, "signals_blocked")]),
    ("A17", "ignored signals are inherited", &[Test(MANNERS, "the_script_sees_nothing_of_the_hosts_signals")]),
    ("A18", "standard input is inherited", &[Test("tests/input.rs", "a_script_has_no_input_and_is_told_so")]),
    ("A19", "a controlling terminal", &[Test(ENVIRONMENT, "the_child_is_a_process_of_its_own_kind")]),
    ("A20", "O_NONBLOCK reaches the script's streams", &[Test(OUTPUT, "ten_megabytes_without_a_line_end_come_out_of_both_streams"), Test("tests/command.rs", "a_slow_reader_gets_every_byte")]),
    ("A21", "/dev/stdout cannot be opened", &[Test(SUPERVISION, "a_stream_may_be_moved_and_opened_anew")]),
    ("A22", "an odd umask", &[Test(GUEST, "strange_umask"), Test(DIR, "the_umask_of_the_host_has_no_say")]),
    ("A23", "the working directory is gone", &[Test(GUEST, "deleted_cwd"), Test(ENVIRONMENT, "a_directory_that_is_gone_is_replaced_and_said"), Test(ENVIRONMENT, "a_directory_that_may_not_be_entered_is_replaced_or_said")]),
    ("A24", "the host may open a million files", &[Test(SPAWN, "a_program_may_open_as_many_files_as_programs_expect")]),
    ("A25", "descriptors run out half-way", &[Test(GUEST, "descriptors_exhausted")]),
    ("A26", "no process or thread can be made", &[Test("src/sys/thread.rs", "a_thread_that_cannot_be_made_is_an_error_and_leaves_the_mask_alone"), Test(SPAWN, "a_step_that_fails_is_named_and_leaves_no_process")]),
    ("A27", "the host changes its environment meanwhile", &[Because("it is copied once, when the engine is made, and ptc_engine_new says so")]),
    ("A28", "nothing may be executed in TMPDIR", &[Because("nothing is: the interpreter reads the script")]),
    ("A29", "the file system is full or cannot be written", &[Test(GUEST, "full_tmpdir"), Test(GUEST, "read_only_tmpdir"), Test(DIR, "full_and_read_only_file_systems_are_passed_over_and_leave_nothing")]),
    ("A30", "the interpreter is replaced between two runs", &[Test("src/python/tests/interpreters.rs", "an_interpreter_is_probed_once_until_its_file_changes_or_it_is_forgotten")]),
    ("A31", "the child's stack is too small in a debug build", &[Because("the whole suite is one")]),
    // ---- output and the socket ----
    ("B1", "somebody holds stdout after the script's end", &[Test(SUPERVISION, "jobs_in_the_background_delay_nothing_and_end_with_the_script"), Test(SUPERVISION, "a_daemon_by_the_book_is_found_and_killed")]),
    ("B2", "the end of a pipe is not the end of a script", &[Test(SUPERVISION, "a_script_may_close_its_streams_and_goes_on")]),
    ("B3", "a pipe that has ended wakes for ever", &[Test(OUTPUT, "a_stream_that_is_closed_early_costs_no_processor_time")]),
    ("B4", "one stream starves the clock and the other", &[Test(OUTPUT, "a_flood_on_one_stream_starves_neither_the_other_nor_the_clock")]),
    ("B5", "a pipe that nobody reads stops the script", &[Test(RESULT, "ten_megabytes_without_a_line_end_are_taken")]),
    ("B6", "a character lies across a border", &[Test(OUTPUT, "a_character_of_four_bytes_lies_whole_across_every_border"), Test(RESULT, "characters_stay_whole_at_both_cuts")]),
    ("B7", "what was written before the kill is still in the pipe", &[Test(OUTPUT, "a_full_pipe_is_read_to_its_end_after_the_kill")]),
    ("B8", "what is in Python's buffers is lost", &[Test(SUPERVISION, "what_is_in_a_buffer_when_the_script_is_stopped_is_not_lost")]),
    ("B9", "large pipes use up what a user may have", &[Because("pipes have the size that the system gives them")]),
    ("B10", "a peer that has gone kills the host by SIGPIPE", &[Test(GUEST, "sigpipe_default"), Test(MANNERS, "no_sigpipe")]),
    ("B11", "a script does not read its replies", &[Test(WIRE, "a_client_that_does_not_read_its_replies_stops_only_itself")]),
    ("B12", "signals interrupt system calls", &[Test("src/sys/poll.rs", "a_signal_handler_does_not_end_the_wait"), Test(GUEST, "signal_storm")]),
    ("B13", "the queue of a socket is full", &[Test("src/sys/socket.rs", "many_clients_can_queue_up")]),
    ("B14", "the path of a socket is too long", &[Test(GUEST, "long_tmpdir"), Test(DIR, "the_longest_path_that_is_accepted_takes_a_socket")]),
    ("B15", "somebody else connects", &[Test(WIRE, "the_socket_is_for_this_user_alone")]),
    ("B16", "forked children share a connection", &[Test("tests/parallel.rs", "forked_children_get_their_own_answers")]),
    ("B17", "descriptors are pushed into the host", &[Test("src/sys/fd.rs", "descriptors_pushed_by_a_peer_are_dropped")]),
    ("B18", "a run ends while a tool is at work", &[Test(SUPERVISION, "a_run_that_ends_while_dispatch_is_inside_does_not_wait_for_it"), Test(SUPERVISION, "a_script_that_dies_in_a_call_leaves_it_unanswered")]),
    // ---- time ----
    ("C1", "the clock on the wall jumps", &[Because("only std's Instant is used, which is CLOCK_MONOTONIC")]),
    ("C2", "the machine sleeps", &[Because("the monotonic clock stands still meanwhile: a sleep does not eat the timeout")]),
    ("C3", "timeouts are rounded down or overflow", &[Test("src/sys/poll.rs", "timeouts_are_rounded_up_and_clamped")]),
    ("C4", "a script that ends in time is called late", &[Test(HANDLES, "a_cancel_may_race_the_natural_end")]),
    ("C5", "cancel and timeout at once, twice, too early, during the grace", &[Test(HANDLES, "a_cancel_during_the_grace_of_a_timeout_does_not_change_the_cause"), Test(HANDLES, "the_first_cancel_counts_and_a_later_one_changes_nothing"), Test(HANDLES, "a_run_may_be_cancelled_before_it_has_started")]),
    // ---- ending ----
    ("D1", "a signal meets a recycled pid", &[Test(CHILD, "signals_reach_the_whole_group_also_after_its_leader")]),
    ("D2", "the host has reaped the leader", &[Test(CHILD, "a_host_that_reaps_everything_costs_no_more_than_the_status"), Test(GUEST, "reaper")]),
    ("D3", "SIGTERM is ignored, or answered for ever", &[Test(SUPERVISION, "a_script_that_ignores_the_question_is_killed_after_the_grace"), Test(SUPERVISION, "a_script_that_answers_with_words_for_ever_is_killed_after_the_grace"), Test(SUPERVISION, "a_script_that_cannot_hear_the_question_is_killed_after_the_grace")]),
    ("D4", "a stopped process hears no SIGTERM", &[Test(SUPERVISION, "a_stopped_script_is_waked_to_end"), Test(CHILD, "a_stopped_group_gets_to_its_termination")]),
    ("D5", "a process leaves group and session", &[Test(SCAN, "an_escapee_that_shed_all_but_its_limits_is_found"), Test(SUPERVISION, "a_daemon_of_a_script_that_is_stopped_is_found_and_killed")]),
    ("D6", "a fork bomb", &[Test(SUPERVISION, "four_hundred_processes_end_together"), Test(SCAN, "a_bounded_fork_bomb_of_sessions_is_ended")]),
    ("D7", "freezing before the hunt makes orphans hang up", &[Because("nothing is frozen")]),
    ("D8", "zombies look alive", &[Test(SCAN, "zombies_do_not_count")]),
    ("D9", "a process whose first thread has ended looks like a zombie", &[Test("src/sys/scan/procfs.rs", "a_zombie_with_threads_lives")]),
    ("D10", "a signal to the group 0, 1 or to the host's own", &[Test(CHILD, "the_groups_of_init_and_of_the_host_are_never_signalled")]),
    ("D11", "a signal to the group before there is one", &[Test(HANDLES, "a_run_may_be_cancelled_before_it_has_started")]),
    ("D12", "a process that cannot be killed", &[Because("needs a file system that hangs; the wait for it is bounded, and it counts as a survivor")]),
    ("D13", "a descendant of another user", &[Test("src/sys/confine/tests.rs", "privileges_are_gone_and_stay_so_over_exec")]),
    ("D14", "macOS says EPERM of a group of zombies", &[Because("needs macOS")]),
    ("D15", "a SIGKILL that was not ours", &[Test(SUPERVISION, "a_script_that_kills_its_group_has_been_killed_and_nobody_else")]),
    ("D16", "a core dump is waited for", &[Test("tests/sandbox_limits.rs", "limits_cannot_be_lifted_and_there_are_no_core_dumps")]),
    ("D17", "processes are started during the grace", &[Test(SUPERVISION, "daemons_that_beget_daemons_are_hunted_down")]),
    ("D18", "the script kills its host", &[Test("src/sys/confine/tests.rs", "the_host_is_out_of_reach_and_without_guard_it_is_not")]),
    ("D19", "work is handed to a daemon that is no descendant", &[Because("nobody can tell it from the daemon's own; the README says so")]),
    ("D20", "a subreaper in the host inherits all its orphans", &[Test(MANNERS, "the_state_of_the_process_is_untouched")]),
    ("D21", "the host waits for all its children", &[Test(MANNERS, "children_of_the_host_are_its_own")]),
    ("D22", "segments of shared memory outlive their process", &[Because("they are the user's files; in a sandbox as well")]),
    // ---- exit status ----
    ("E1", "SIGCHLD is ignored", &[Test(GUEST, "sigchld_ignored"), Test(GUEST, "sigchld_no_zombies")]),
    ("E2", "the host reaps every child", &[Test(GUEST, "reaper"), Test(MANNERS, "a_host_that_reaps_in_its_handler")]),
    ("E3", "a status of the host's own children is stolen", &[Test(GUEST, "own_children"), Test(MANNERS, "a_host_that_reaps_every_child")]),
    ("E4", "a child without an exit signal", &[Because("exec gives it back, so it is not tried")]),
    ("E5", "Darwin leaves siginfo as it was", &[Because("needs macOS; it is zeroed before")]),
    ("E6", "a wait for any child", &[Test(GUEST, "own_children")]),
    ("E7", "no process descriptors", &[Test(CHILD, "the_end_and_how_it_came_are_told")]),
    // ---- the host's death ----
    ("F1", "the child dies with the thread that made it", &[Test(SUPERVISION, "a_run_that_was_started_by_a_thread_that_is_no_more_goes_on")]),
    ("F2", "the host dies between two steps of the start", &[Test(SUPERVISION, "a_host_may_die_at_any_moment")]),
    ("F3", "the script holds its own leash", &[Because("the ends are a socket pair of which it holds none that counts; a hostile script can disarm it, and the next engine finds what it has tagged")]),
    ("F4", "an escapee outlives a dead host", &[Test(SUPERVISION, "a_daemon_of_a_dead_host_is_found_by_the_next_engine_and_one_of_a_living_host_is_not"), Test(SCAN, "what_outlived_its_host_is_swept_and_what_has_one_is_not")]),
    ("F5", "a system without signals from descriptors", &[Test("src/python/tests/boot.rs", "a_leash_that_breaks_ends_the_group_and_disturbs_nothing_before")]),
    ("F6", "the directory of a dead host stays", &[Test(DIR, "the_directory_of_a_killed_process_is_swept_and_only_then"), Test(SUPERVISION, "the_sweep_of_a_new_engine_spares_what_belongs_to_a_living_one")]),
    ("F7", "the host replaces itself by exec", &[Because("its descriptors close, and the script ends as with its death")]),
    // ---- the staging directory ----
    ("G1", "a link is planted where we write", &[Test(DIR, "names_that_lead_out_and_links_in_the_way_are_refused")]),
    ("G2", "a link is planted where we remove", &[Test(DIR, "removal_follows_no_link"), Test(DIR, "removal_gets_past_missing_permissions"), Test(DIR, "many_files_are_removed")]),
    ("G3", "somebody writes while we remove", &[Because("nobody of the run is left then, which is tested under D")]),
    ("G4", "the script removes or moves its directory", &[Test(DIR, "a_directory_that_its_script_deleted_moved_or_replaced_is_no_error")]),
    ("G5", "a cleaner of /tmp removes a long run's files", &[Test(DIR, "a_sweep_spares_the_living_the_young_and_the_alike")]),
    // ---- being inside a host ----
    ("H1", "the host's handlers run on our threads", &[Test(MANNERS, "signals_stay_with_the_host"), Test("src/sys/thread.rs", "the_thread_is_blocked_from_the_start_and_its_creator_is_not")]),
    ("H2", "a callback is left by longjmp", &[Because("undefined, and the header says so; no lock is held during a callback")]),
    ("H3", "a container answers EPERM for what it does not have", &[Test("src/sys/confine/tests_sandbox.rs", "older_kernels_do_what_they_can"), Test("src/sys/feature.rs", "the_variable_takes_away_what_it_names_and_nothing_else")]),
    ("H4", "there is no /proc", &[Test(SCAN, "where_nobody_can_look_nobody_knows")]),
    ("H5", "the host is chosen when memory runs out", &[Test(SPAWN, "a_child_is_likelier_to_be_chosen_when_memory_runs_out")]),
    ("H6", "looking at all processes takes long", &[Because("a matter of time: only processes as young as the run are looked at")]),
];

#[test]
fn every_trap_is_in_the_table_once() {
    let groups = [
        ('A', 31),
        ('B', 18),
        ('C', 5),
        ('D', 22),
        ('E', 7),
        ('F', 7),
        ('G', 5),
        ('H', 6),
    ];
    let expected: BTreeSet<String> = groups
        .iter()
        .flat_map(|(group, count)| (1..=*count).map(move |n| format!("{group}{n}")))
        .collect();
    let found: BTreeSet<String> = TRAPS
        .iter()
        .map(|(number, ..)| number.to_string())
        .collect();
    assert_eq!(found, expected);
    assert_eq!(TRAPS.len(), 101);
}

#[test]
fn every_test_of_the_table_is_there() {
    for (number, trap, proofs) in TRAPS {
        assert!(!trap.is_empty(), "{number}");
        proofs::check(number, proofs);
    }
}
