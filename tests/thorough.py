"""Tests that look again, or at more, where others look in short: CI and `make faults` run them, `make test` does not.

A suite that is to be run before each commit may take five minutes of two processors. What takes many seconds of one
stands here, with the shorter test that stays: a whole file, a test, or one of its cases.
"""

from __future__ import annotations

_BY_FILE: dict[str, tuple[str, ...]] = {
    # Kills, and what follows one: test_in_process.py of drills/machine has them at each point, test_storm.py kills.
    "drills/machine/test_processes.py": (),
    "tests/e2e/test_trade_loop.py": (),
    "tests/e2e/test_brakes.py": tuple(
        f"test_a_halt_ends_all_bids_while[{fault}]"
        for fault in ("hang", "workers-stopped", "signer-disk", "signer-disk-eaten")
    ),
    "tests/e2e/test_purchases.py": (  # workers/manager/test_fill_lister.py
        "test_a_reorganisation_stops_the_listing_of_what_was_bought_until_it_is_proved_again",
    ),
    "tests/e2e/test_listing_escrow_deaths.py": (),
    "tests/e2e/test_gone_back.py": (),  # workers/manager/test_gone_back.py
    "tests/e2e/test_reconcile.py": (),  # cli/test_reconcile.py
    "tests/e2e/test_listing_protected.py": ("test_workers_killed_at_each_step_leave_one_listing_or_none",),
    "tests/e2e/test_listing_venues.py": (),  # e2e/test_listing.py, and tests/markets/contract for each venue
    "tests/e2e/test_odd_machines.py": ("test_demo_trades_at_any_address_and_on_any_terminal[::-::-utf-8]",),
    "tests/e2e/test_ordnet.py": (),
    "tests/e2e/test_several_hosts.py": (),  # deploy/test_relay.py
    "tests/e2e/test_going_live.py": (),  # cli/test_going_live.py and wallet/test_locked_service.py
    "tests/web/test_away.py": (),  # web/test_foundation.py, with answers that do not come
    # The API and the signer under attack: server/test_openapi_answers.py, wallet/test_evil_worker.py.
    "tests/e2e/test_schemathesis.py": (),
    "tests/server/test_openapi_random.py": ("test_random_questions_get_described_answers",),
    # core/test_logs.py and core/test_settings.py, for logs and settings alone
    "tests/wallet/test_no_secret_leaks.py": (),
    "tests/wallet/test_evil_server.py": (),
    "tests/server/test_process.py": (
        "test_a_signal_ends_the_server_while_requests_wait[2]",
        "test_a_server_that_cannot_do_its_work_does_not_start[-settings1-BIDKEEPER_ADMINS: *]",
        "test_a_server_that_cannot_do_its_work_does_not_start[-settings2-cannot listen on 203.0.113.1]",
    ),
    # Longer lives: of each kind one ladder, course or month stays.
    "drills/endurance/test_month.py": ("test_hours_of_a_course[crash]",),
    "drills/machine/test_signing_pace.py": (),
    "drills/machine/test_forecast.py": (
        "test_a_ladder_of_the_default_life[1]",
        "test_a_ladder_of_two_hours[1]",
        "test_a_loop_of_thirty_seconds",
        "test_a_loop_of_two_minutes",
        "test_a_rune",
    ),
    "drills/machine/test_quiet.py": ("test_twenty_plain_tasks_ask_for_their_floors_in_one_call",),
    "tests/gateway/test_quota_month.py": (
        "test_three_users_who_look_without_end_cost_a_fourth_no_bid",
        "test_three_users_with_far_too_many_bids_cost_a_modest_fourth_none",
        "test_two_venues_at_once_have_a_month_each",
    ),
    "tests/simulator/test_running.py": (
        "test_background_traders_move_the_floor_of_a_running_market",
    ),  # test_traders.py
    "tests/simulator/test_traders.py": ("test_somebody_sells_to_a_client_soon_and_then_seldom",),
    "tests/strategy/test_plan_properties.py": ("test_random_cycles_reach_every_kind_of_decision",),
    # Every second way in which a venue may fail at a write.
    "drills/machine/test_fault_cells.py": (
        "test_what_must_hold_holds[cancel-bad_json]",
        "test_what_must_hold_holds[cancel-error_500]",
        "test_what_must_hold_holds[cancel-rate_429]",
        "test_what_must_hold_holds[cancel-slow]",
        "test_what_must_hold_holds[place-accept_twice]",
        "test_what_must_hold_holds[place-late]",
        "test_what_must_hold_holds[place-stale]",
    ),
    # Keys: a command and an end of each kind stay.
    "tests/wallet/test_keys_command.py": (
        "test_init_from_words_gives_users_the_numbers_they_had",
        "test_an_import_is_noted_so_that_the_keystore_from_before_it_opens_no_more",
        "test_what_changes_keys_waits_for_the_signers_end",
        "test_a_play_keystore_is_neither_replaced_nor_changed",
        "test_no_clients_wrong_passphrases_keep_the_operator_out",
    ),
    "tests/wallet/test_unlock.py": (
        "test_it_goes_on_answering_while_it_is_unlocked",
        "test_it_stays_locked_when_it_does_not_remember_what_it_signed[log]",
        "test_a_misshapen_unlock_is_no_try[request_1]",
        "test_a_misshapen_unlock_is_no_try[request_2]",
        "test_the_keystore_file_is_whole_whenever_the_signer_is_killed",
    ),
    "tests/wallet/test_offer_fuzz.py": ("test_the_judge_notices_a_rule_that_does_nothing",),  # test_offer_check.py
    # Packages are downloaded and installed for each; the other tests there look at what wheel and sdist hold.
    "tests/deploy/test_packages.py": ("test_an_installed_demo_is_ready_in_an_empty_folder_and_its_four_tasks_act",),
    "tests/deploy/test_three_users.py": ("test_a_restarted_gateway_looks_up_the_tokens",),
    "tests/e2e/test_withdraw.py": ("test_money_comes_out_of_the_bidding_wallet_and_then_home[2of3-bc1q]",),
    "tests/e2e/test_listing_escrow.py": (
        "test_an_item_in_its_escrow_is_still_for_sale_and_comes_home_for_another_price",
    ),
    "tests/e2e/test_play_wallet.py": (),  # web/test_sign_in.py has the click, soak the tasks
    "tests/e2e/test_tour.py": (),  # its routes have tests of their own in server/
    # What managers do with listers as with bidders (test_manager.py), and with started Pythons as with forks.
    "tests/workers/manager/test_listers.py": (
        "test_the_title_names_the_task_as_its_owner_knows_it",
        "test_a_slow_cancel_is_not_waited_for_longer_than_told_and_goes_on",
        "test_a_new_revision_gets_a_new_lister_and_keeps_the_listing",
        "test_a_killed_lister_comes_back",
        "test_one_that_only_dies_is_given_up_and_its_listing_stays",
        "test_a_manager_that_comes_back_brings_its_listers_back",
    ),
    "tests/workers/manager/test_gone_back.py": (
        "test_a_wanted_task_starts_again_by_itself[popen]",
        "test_its_token_is_above_what_each_of_the_two_has_seen[20-20]",
        "test_its_token_is_above_what_each_of_the_two_has_seen[9-0]",
    ),
    "tests/workers/manager/test_refusals.py": (
        "test_a_start_is_refused_and_nothing_runs[signer_says_no-start_failed]",
        "test_a_start_of_its_own_accord_is_tried_until_the_signer_is_unlocked",
        "test_whoever_takes_somebody_off_the_whitelist_has_it_enforced_at_once",
        "test_what_finds_no_place_by_itself_says_so_and_gets_one_later",
        "test_a_worker_that_failed_to_start_leaves_its_place",
    ),
    "tests/workers/manager/test_deaths.py": (
        "test_a_killed_worker_comes_back_after_a_rest_and_is_never_doubled[popen]",
        "test_what_a_restart_would_not_help_is_given_up_at_once[zygote-is-unwelcome-the key is not accepted]",
    ),
    "tests/workers/spawning/test_spawners.py": ("test_how_a_worker_ended_is_told_alike[popen]",),
    "tests/workers/manager/test_manager_process.py": ("test_a_second_manager_says_so_and_ends[popen]",),
    "tests/replay/test_replay.py": ("test_processes_print_the_same_bytes_whatever_their_hash_seed",),
    "tests/test_side_by_side.py": (
        "test_a_run_that_is_broken_off_ends_what_its_tests_have_begun[15]",
        "test_sigterm_ends_what_a_single_run_has_begun",
        "test_a_process_that_ends_before_its_tests_is_a_failure",
        "test_a_file_may_be_named_by_a_way_round",
        "test_a_file_is_read_in_with_warnings_for_errors",
        "test_no_test_is_no_success[not_a_mark-1]",
        "test_a_name_that_is_nowhere_is_a_failure",
        "test_a_failure_in_letters_that_are_none_is_told_once",
        "test_no_test_is_no_success[faults and slow-5]",
        "test_single_tests_can_be_asked_for",
    ),
    # each scene by itself and some drawn seeds stay; `python -m bench.scenes` has more
    "tests/scenes/test_scenes.py": (
        "test_thirty_more_seeds_with_drawn_scenes",
        "test_odd_row_before_the_best_is_refused_and_never_misread",
    ),
    "tests/test_english.py": ("test_tests_ask_no_riddles_either",),
    # The page: of screens, wallets and tabs alike some stay.
    "tests/web/test_hostile.py": (),  # test_edit.py and test_overview.py show hostile names, too
    "tests/web/test_admin.py": (),  # from here on test_screens.py shows each place, and tests/server what it asks for
    "tests/web/test_history.py": (),
    "tests/web/test_listings.py": (),
    "tests/web/test_settings.py": (),
    "tests/web/test_tabs.py": (),
    "tests/web/test_screens.py": tuple(
        f"test_a_screen[{screen}]"
        for screen in ("bids", "listings", "list", "history", "venues", "tasks-id-edit", "more", "no-such-page")
    ),
    "tests/web/test_sign_in.py": (
        *(
            "test_each_wallet_is_found_late_may_refuse_may_be_old_and_signs_in_with_its_address_for_items" + wallet
            for wallet in ("[okx]", "[phantom]", "[leather]")
        ),
        "test_the_address_for_coins_can_be_chosen_and_is_remembered[leather]",
        "test_the_address_for_coins_can_be_chosen_and_is_remembered[phantom]",
        "test_an_address_of_another_kind_is_told_which_to_pick[1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2]",
        "test_an_xverse_from_before_wallet_connect_is_asked_as_it_was_then",
        "test_a_text_that_is_too_old_is_not_the_persons_fault",
        "test_too_many_sign_ins_are_counted_down",
        "test_a_wallet_whose_address_is_not_on_the_list_is_told_so",
        "test_where_there_is_no_play_wallet_none_is_offered",
    ),
    "tests/web/test_task.py": (
        "test_a_window_made_narrow_keeps_its_pictures_within_at_once",
        "test_stop_says_first_what_becomes_of_the_bids[False-stay until]",
        "test_what_a_dialog_says_of_the_bids_follows_them",
        "test_who_goes_back_leaves_the_question_unanswered",
        "test_a_rune_has_prices_per_token_whatever_each_order_buys",
        "test_what_if_tries_other_settings_on_the_recorded_past",
    ),
    "tests/web/test_edit.py": (
        "test_a_plan_that_grows_old_takes_back_no_question_of_a_save",
        "test_a_window_that_is_made_narrow_does_not_jut_out_before_the_plan_has_moved",
    ),
    "tests/web/test_foundation.py": (
        "test_a_session_that_ended_takes_no_other_one_off_the_device",
        "test_what_an_event_had_put_off_is_not_asked_after_the_session",
        "test_the_clock_does_not_go_by_what_the_browser_kept",
        "test_a_fresh_plan_is_fresh_where_this_machines_clock_is_slow",
        "test_a_tab_that_is_looked_at_takes_over_from_one_that_sleeps",
        "test_a_link_from_elsewhere_leads_straight_there[/no/such/page-No such page]",
    ),
}

THOROUGH = frozenset(
    file + (f"::{name}" if name else "") for file, names in _BY_FILE.items() for name in names or ("",)
)


def is_thorough(nodeid: str) -> bool:
    """Tells whether a test, its file or all its cases stand here."""
    return not THOROUGH.isdisjoint((nodeid, nodeid.partition("[")[0], nodeid.partition("::")[0]))
