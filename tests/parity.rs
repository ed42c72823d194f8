//! The cases of a comparable engine's own test suite, each with the test here that proves the same, or with the reason
//! why it has no place here. `P`: scripts, one at a time; `M`: modes; `E`: environment; `K`: sessions; `H`: hints.

#[path = "support/proofs.rs"]
mod proofs;

use proofs::Proof::{self, Because, Test};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

const CASES: &str = "tests/parity_cases.rs";
const RESULT: &str = "tests/result.rs";
const INPUT: &str = "tests/input.rs";
const ENVIRONMENT: &str = "tests/environment.rs";
const SCRIPTS: &str = "tests/scripts.rs";
const WIRE: &str = "tests/wire.rs";
const DEFINITION: &str = "src/definition_tests.rs";
const CONFIG: &str = "src/config/tests.rs";
const TOOL: &str = "src/tool/tests.rs";
const STUBS: &str = "src/python/stubs_tests.rs";
const HELPERS: &str = "src/python/tests/helpers.rs";
const INTERPRETERS: &str = "src/python/tests/interpreters.rs";
const ENVIRON: &str = "src/python/environ.rs";

const WINDOWS: Proof =
    Because("Windows: the crate compiles there and says that it is not supported");
const SESSION: Proof = Because(
    "sessions: every run here is a process of its own, and the option `session` is refused",
);
const REMOTE: Proof = Because("remote backends: a script runs on the host's machine");
const WORDING: Proof =
    Because("their wording: the description here is our own, and says what holds here");

type Row = (char, RangeInclusive<u32>, &'static [Proof]);

const ROWS: &[Row] = &[
    ('P', 1..=1, &[Test("tests/c/arguments.c", "versions")]),
    ('P', 2..=2, &[Test(DEFINITION, "each_format_is_what_its_interface_expects")]),
    ('P', 3..=3, &[Test(TOOL, "the_standard_tools_bring_their_signatures"), Test(STUBS, "the_standard_tools_send_what_was_given_and_nothing_else")]),
    ('P', 4..=4, &[Test(HELPERS, "a_run_can_narrow_the_tools"), Test(CASES, "a_run_with_some_tools_has_no_others")]),
    ('P', 5..=5, &[Test(STUBS, "without_tools_the_module_still_has_its_helpers")]),
    ('P', 6..=6, &[Test(TOOL, "bad_specifications_name_their_path"), Because("a name that is no standard tool needs a specification here, instead of being passed over")]),
    ('P', 7..=7, &[Test(ENVIRONMENT, "every_run_has_a_token_and_a_socket_of_its_own"), Test(WIRE, "a_program_in_another_language_may_speak_it")]),
    ('P', 8..=8, &[Test(HELPERS, "the_module_shows_tools_and_helpers_only")]),
    ('P', 9..=9, &[Test(RESULT, "success_is_stdout_alone"), Test(RESULT, "the_first_keys_are_the_ones_that_every_result_has")]),
    ('P', 10..=10, &[Because("a matter of time: the row `cold` of examples/bench.rs")]),
    ('P', 11..=11, &[Test(ENVIRONMENT, "a_project_is_where_the_script_works")]),
    ('P', 12..=12, &[Test(SCRIPTS, "build_and_test"), Test(RESULT, "the_ledger_tells_what_became_of_each_call")]),
    ('P', 13..=13, &[Test(SCRIPTS, "text_of_every_kind_arrives_as_it_was_sent")]),
    ('P', 14..=15, &[Test("tests/parallel.rs", "a_thousand_calls_of_thirty_two_threads_get_their_own_answers"), Test("src/python/tests/calls.rs", "threads_call_at_once_and_each_gets_its_own_answer")]),
    ('P', 16..=16, &[Test(INPUT, "a_script_that_cannot_be_compiled_never_starts")]),
    ('P', 17..=17, &[Test(RESULT, "the_error_of_an_uncaught_exception_is_the_line_that_names_it")]),
    ('P', 18..=18, &[Test(INPUT, "a_tool_that_there_is_not_stops_the_script_before_it_begins"), Test(HELPERS, "a_missing_tool_is_answered_with_what_there_is")]),
    ('P', 19..=19, &[Test(CASES, "lines_come_in_the_order_in_which_they_were_printed")]),
    ('P', 20..=20, &[Test(RESULT, "output_is_kept_on_every_way_out"), Test(CASES, "what_was_printed_and_what_was_raised_are_both_there")]),
    ('P', 21..=21, &[Test(RESULT, "a_timeout_gives_the_number_as_it_was_configured")]),
    ('P', 22..=22, &[Test(SCRIPTS, "search_and_summarise")]),
    ('P', 23..=24, &[Test(HELPERS, "json_parse_forgives_what_surrounds_json"), Test(CASES, "json_parse_takes_tabs_line_ends_and_a_mark")]),
    ('P', 25..=25, &[Test(HELPERS, "shell_quote_makes_one_word_of_anything")]),
    ('P', 26..=28, &[Test(HELPERS, "retry_tries_again_and_waits_longer_each_time"), Test(CASES, "retry_gives_the_first_result_or_the_last_error")]),
    ('P', 29..=30, &[Test(STUBS, "the_standard_tools_send_what_was_given_and_nothing_else")]),
    ('P', 31..=32, &[Test(CASES, "the_standard_signatures_are_the_ones_that_models_know")]),
    ('P', 33..=36, &[Test(DEFINITION, "it_names_the_tools_at_hand_and_no_others"), Test(DEFINITION, "each_format_is_what_its_interface_expects")]),
    ('P', 37..=38, &[Test(DEFINITION, "the_import_example_prefers_the_common_tools")]),
    ('P', 39..=41, &[Test(DEFINITION, "without_tools_nothing_is_imported")]),
    ('P', 42..=42, &[Test(DEFINITION, "the_limits_are_those_in_force")]),
    ('P', 43..=43, &[Test(CASES, "the_definition_names_the_helpers")]),
    ('P', 44..=44, &[Test(DEFINITION, "it_names_the_tools_at_hand_and_no_others")]),
    ('P', 45..=47, &[Test(ENVIRONMENT, "only_names_that_are_known_to_be_harmless_reach_the_script"), Test(ENVIRON, "secrets_and_unknown_names_stay_outside"), Test(CASES, "the_secrets_that_agents_have_do_not_reach_a_script")]),
    ('P', 48..=49, &[Test(ENVIRON, "every_name_of_the_contract_passes"), Test(ENVIRON, "secrets_and_unknown_names_stay_outside")]),
    ('P', 50..=50, &[Test(ENVIRONMENT, "every_run_has_a_token_and_a_socket_of_its_own")]),
    ('P', 51..=51, &[Test(ENVIRONMENT, "the_child_is_a_process_of_its_own_kind")]),
    ('P', 52..=53, &[Test(CASES, "the_time_zone_of_the_host_is_the_scripts")]),
    ('P', 54..=54, &[Test("tests/c/arguments.c", "versions"), WINDOWS]),
    ('P', 55..=55, &[Test(INPUT, "code_without_anything_in_it_is_refused")]),
    ('P', 56..=59, &[Test("tests/mcp/calls.rs", "a_call_that_cannot_be_one_is_refused_and_says_why"), Test(STUBS, "wrong_arguments_are_explained"), Because("elsewhere the host reads the model's arguments itself")]),
    ('P', 60..=60, &[Test(CASES, "a_run_that_says_nothing_of_tools_has_all")]),
    ('P', 61..=62, &[Test(CONFIG, "bad_options_name_their_path"), Because("an empty list means no tools here, and a name that there is not is an error: a narrowing never widens")]),
    ('P', 63..=64, &[Test(CONFIG, "nothing_means_the_defaults"), Test(CONFIG, "every_key_is_read")]),
    ('P', 65..=65, &[Because("their modules: nothing of the host is imported here")]),
    ('P', 66..=68, &[Test(RESULT, "a_cancelled_run_keeps_its_output_and_says_why"), Test(RESULT, "a_run_that_is_cancelled_at_once_ends_as_interrupted")]),
    ('P', 69..=69, &[Test(RESULT, "up_to_the_limit_output_is_whole")]),
    ('P', 70..=71, &[Test(RESULT, "one_byte_more_than_the_limit_is_cut_and_counted"), Test(CASES, "beginning_and_end_of_a_long_output_are_there")]),
    ('P', 72..=72, &[REMOTE]),
    ('P', 73..=73, &[Test(ENVIRONMENT, "nothing_is_left_of_a_run_in_the_temporary_directory")]),
    ('P', 74..=74, &[REMOTE]),
    ('P', 75..=79, &[Test(WIRE, "a_first_line_without_the_token_is_refused_and_ends_the_connection"), Test(ENVIRONMENT, "every_run_has_a_token_and_a_socket_of_its_own")]),
    ('M', 1..=1, &[Test(CONFIG, "nothing_means_the_defaults")]),
    ('M', 2..=5, &[Test(CASES, "a_mode_is_read_in_any_case_and_with_space_around_it")]),
    ('M', 6..=6, &[Test(CONFIG, "nothing_means_the_defaults")]),
    ('M', 7..=7, &[Test(CONFIG, "a_bad_value_names_its_path_and_what_was_expected"), Because("a mode that there is not is an error here and no silent default")]),
    ('M', 8..=8, &[Test(CONFIG, "null_means_the_default_for_every_key")]),
    ('M', 9..=9, &[Test(CONFIG, "the_names_of_enums_are_those_of_the_configuration")]),
    ('M', 10..=12, &[Test(INTERPRETERS, "environments_come_first_in_project_mode_and_never_in_strict_mode"), Test(ENVIRONMENT, "an_active_venv_is_used_in_project_mode_and_not_in_strict")]),
    ('M', 13..=13, &[Test(ENVIRONMENT, "a_broken_venv_is_passed_over")]),
    ('M', 14..=14, &[Test(INTERPRETERS, "environments_come_first_in_project_mode_and_never_in_strict_mode")]),
    ('M', 15..=16, &[Test(INTERPRETERS, "what_cannot_be_found_is_named"), Test(INTERPRETERS, "every_installed_interpreter_is_accepted_or_refused_for_its_age")]),
    ('M', 17..=17, &[Test(ENVIRONMENT, "strict_mode_works_in_the_staging_directory")]),
    ('M', 18..=18, &[Test(ENVIRONMENT, "without_a_setting_it_is_the_hosts_directory")]),
    ('M', 19..=19, &[Test(ENVIRONMENT, "a_project_is_where_the_script_works")]),
    ('M', 20..=20, &[Test(ENVIRONMENT, "a_directory_that_is_gone_is_replaced_and_said")]),
    ('M', 21..=21, &[Test(CONFIG, "home_and_relative_paths_are_made_absolute")]),
    ('M', 22..=22, &[Test(CONFIG, "options_lie_over_the_configuration")]),
    ('M', 23..=25, &[Because("a shell's `cd` that is remembered: the host gives the directory of each run itself")]),
    ('M', 26..=27, &[Test(DEFINITION, "the_modes_exclude_each_other_and_promise_no_sandbox")]),
    ('M', 28..=30, &[WORDING]),
    ('M', 31..=32, &[Test(DEFINITION, "the_terminal_is_named_only_where_there_is_one")]),
    ('M', 33..=34, &[Test(DEFINITION, "the_modes_exclude_each_other_and_promise_no_sandbox")]),
    ('M', 35..=35, &[WORDING]),
    ('M', 36..=36, &[Test(DEFINITION, "the_modes_exclude_each_other_and_promise_no_sandbox")]),
    ('M', 37..=37, &[Test(ENVIRONMENT, "strict_mode_works_in_the_staging_directory")]),
    ('M', 38..=38, &[Test(ENVIRONMENT, "a_project_is_where_the_script_works")]),
    ('M', 39..=39, &[Test(CONFIG, "options_lie_over_the_configuration")]),
    ('M', 40..=40, &[Test(ENVIRONMENT, "an_active_venv_is_used_in_project_mode_and_not_in_strict")]),
    ('M', 41..=42, &[Test(SCRIPTS, "build_and_test"), Test(SCRIPTS, "search_and_summarise")]),
    ('M', 43..=45, &[Test(CASES, "the_secrets_that_agents_have_do_not_reach_a_script")]),
    ('M', 46..=47, &[Test(TOOL, "what_a_script_must_never_call_is_refused"), Test(CASES, "scripts_neither_run_scripts_nor_delegate")]),
    ('E', 1..=4, &[Test(ENVIRON, "secrets_and_unknown_names_stay_outside"), Test(ENVIRON, "a_declared_name_overrides_both_rules_and_only_itself"), WINDOWS]),
    ('E', 5..=7, &[WINDOWS]),
    ('K', 1..=4, &[SESSION, Test(CASES, "a_session_is_refused_with_a_reason")]),
    ('K', 5..=6, &[Test(WIRE, "the_socket_is_for_this_user_alone")]),
    ('K', 7..=10, &[Because("their broker of descriptors, for which there is no need")]),
    ('K', 11..=11, &[Test(RESULT, "what_is_cut_is_in_a_file_if_there_is_a_place_for_it")]),
    ('K', 12..=12, &[Test(RESULT, "the_file_is_capped_too_and_says_so")]),
    ('K', 13..=13, &[Test(WIRE, "every_bad_line_is_answered_by_name_and_the_next_one_is_served")]),
    ('K', 14..=14, &[Test(WIRE, "the_limit_of_a_request_is_exact_and_the_connection_goes_on"), Test(WIRE, "an_oversized_line_is_not_held_in_memory")]),
    ('K', 15..=16, &[Because("their broker of descriptors, for which there is no need")]),
    ('K', 17..=19, &[Test("tests/supervision.rs", "a_script_that_dies_in_a_call_leaves_it_unanswered"), Test("tests/supervision.rs", "a_script_may_close_its_streams_and_goes_on")]),
    ('K', 20..=21, &[Test("tests/handles.rs", "three_hundred_runs_leave_everything_as_it_was"), Test("tests/soak.rs", "two_hundred_runs_leave_nothing_behind")]),
    ('K', 22..=22, &[Test("tests/supervision.rs", "jobs_in_the_background_delay_nothing_and_end_with_the_script")]),
    ('K', 23..=23, &[Test("src/sys/child/tests.rs", "a_host_that_reaps_everything_costs_no_more_than_the_status")]),
    ('K', 24..=24, &[Test("tests/supervision.rs", "a_host_may_die_at_any_moment"), Test("tests/supervision.rs", "a_script_dies_with_its_host")]),
    ('K', 25..=25, &[Test(RESULT, "output_before_a_timeout_is_kept")]),
    ('K', 26..=26, &[Test("tests/torture.rs", "every_script_gives_its_result")]),
    ('K', 27..=27, &[Test("tests/torture.rs", "every_script_gives_its_result"), Test(RESULT, "output_is_kept_on_every_way_out")]),
    ('K', 28..=28, &[Test(CASES, "an_old_key_of_sessions_does_no_harm")]),
    ('K', 29..=38, &[SESSION, Test("tests/handles.rs", "fifty_runs_at_once_do_not_meet")]),
    ('K', 39..=42, &[Test("tests/handles.rs", "calls_carry_the_context_of_their_run_and_numbers_of_their_own"), Test(WIRE, "nobody_is_served_once_the_run_has_ended"), SESSION]),
    ('K', 43..=44, &[SESSION]),
    ('K', 45..=45, &[Test("src/sys/dir/tests.rs", "a_sweep_spares_the_living_the_young_and_the_alike")]),
    ('H', 1..=1, &[Test(RESULT, "known_mistakes_are_explained")]),
    ('H', 2..=3, &[Test(CASES, "an_ordinary_error_has_no_hint")]),
    ('H', 4..=5, &[Test(RESULT, "known_mistakes_are_explained")]),
    ('H', 6..=7, &[Test(CASES, "quotes_that_do_not_fit_are_told_with_their_line")]),
    ('H', 8..=9, &[Because("a shell's mistakes: the built-in terminal returns what the shell says")]),
    ('H', 10..=10, &[Test(CASES, "an_ordinary_error_has_no_hint")]),
];

/// What the comparable suite never tests.
const BEYOND: &[(&str, &[Proof])] = &[
    (
        "partial output on a timeout",
        &[Test(RESULT, "output_before_a_timeout_is_kept")],
    ),
    (
        "children left after success",
        &[Test(
            "tests/supervision.rs",
            "jobs_in_the_background_delay_nothing_and_end_with_the_script",
        )],
    ),
    (
        "SIGTERM ignored",
        &[Test(
            "tests/supervision.rs",
            "a_script_that_ignores_the_question_is_killed_after_the_grace",
        )],
    ),
    (
        "a second process calling tools",
        &[Test(
            "tests/parallel.rs",
            "spawned_interpreters_may_import_the_module_and_call",
        )],
    ),
    (
        "the call limit reached in a real script",
        &[Test(
            RESULT,
            "at_the_limit_calls_are_refused_and_the_script_goes_on",
        )],
    ),
    (
        "a result with line ends",
        &[Test(SCRIPTS, "text_of_every_kind_arrives_as_it_was_sent")],
    ),
    (
        "surrogates",
        &[
            Test(RESULT, "output_is_utf8_text_whatever_was_written"),
            Test(
                "src/python/tests/calls.rs",
                "values_arrive_as_they_were_sent",
            ),
        ],
    ),
    (
        "exit codes",
        &[Test(RESULT, "another_exit_code_is_an_error_with_words")],
    ),
    (
        "stderr on success",
        &[Test(RESULT, "success_is_stdout_alone")],
    ),
    (
        "the limit of stderr",
        &[Test(RESULT, "stderr_has_a_limit_of_its_own")],
    ),
    (
        "the host's death in a call",
        &[Test(
            "tests/supervision.rs",
            "a_script_dies_with_a_host_that_is_inside_of_dispatch",
        )],
    ),
    (
        "descriptors that leak",
        &[
            Test("tests/c/manners.c", "nothing_is_left_behind"),
            Test(
                "tests/handles.rs",
                "three_hundred_runs_leave_everything_as_it_was",
            ),
        ],
    ),
    (
        "a call in flight at a timeout",
        &[
            Test(RESULT, "a_timeout_that_a_tool_has_caused_names_the_tool"),
            Test(RESULT, "a_stopped_run_tells_of_its_calls"),
        ],
    ),
];

#[test]
fn every_case_is_in_the_table_once() {
    let mut found: BTreeMap<char, Vec<u32>> = BTreeMap::new();
    for (group, numbers, _) in ROWS {
        found.entry(*group).or_default().extend(numbers.clone());
    }
    let expected = [('P', 79), ('M', 47), ('E', 7), ('K', 45), ('H', 10)];
    let expected: BTreeMap<char, Vec<u32>> = expected
        .map(|(group, last)| (group, (1..=last).collect()))
        .into();
    assert_eq!(found, expected);
}

#[test]
fn every_test_of_the_table_is_there() {
    for (group, numbers, proofs) in ROWS {
        proofs::check(&format!("{group}{}", numbers.start()), proofs);
    }
    for (case, proofs) in BEYOND {
        proofs::check(case, proofs);
    }
}
