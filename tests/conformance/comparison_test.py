"""Tests that the comparison finds every difference. Otherwise the conformance tests could not fail."""

import copy
import unittest

import comparison

OURS = {
    "timestamp": 10, "provider": "P", "name": "E", "id": 1, "version": 0, "level": 4, "keywords": "0x1",
    "opcode": 0, "pid": 1, "tid": 2, "cpu": 3, "activityId": None, "relatedActivityId": None,
    "payload": {"n": 1, "text": "abc", "list": [1, 2], "object": {"x": 1.5}},
}
THEIRS = {**OURS, "providerGuid": "P's", "opcodeName": "Info", "activityId": comparison.NO_ID,
          "relatedActivityId": comparison.NO_ID}
TOTALS = {"exception": None, "payloadFailures": 0, "lost": 0}


def compare(ours=None, theirs=None, totals=None, lost=0, **options):
    result = comparison.Comparison(**options)
    result.files([OURS] if ours is None else ours, [THEIRS] if theirs is None else theirs,
                 {**TOTALS, **(totals or {})}, lost)
    return result


def changed(event, **changes):
    return {**copy.deepcopy(event), **changes}


def with_text(ours, theirs, allowed=()):
    return compare([changed(OURS, payload={"t": ours})], [changed(THEIRS, payload={"t": theirs})], allowed=allowed)


class ComparisonTest(unittest.TestCase):
    def test_same_files_have_no_differences(self):
        self.assertEqual(compare().differences, [])

    def test_every_header_field_is_compared(self):
        for key in ("timestamp", "provider", "name", "id", "version", "level", "keywords", "opcode", "pid", "tid",
                    "cpu", "activityId", "relatedActivityId"):
            value = "other" if isinstance(THEIRS[key], str) else 99
            self.assertEqual(compare(theirs=[changed(THEIRS, **{key: value})]).count, 1, key)

    def test_times_of_day_are_compared_to_the_microsecond(self):
        ours = changed(OURS, time="2026-11-21T10:00:00.123456789Z")
        for time, differences in (("2026-11-21T10:00:00.1234567Z", 0), ("2026-11-21T10:00:00.123459Z", 1),
                                  ("2026-11-21T11:00:00.1234567Z", 1)):
            self.assertEqual(compare([ours], [changed(THEIRS, time=time)]).count, differences, time)

    def test_own_ids_still_distinguish_schemas(self):
        theirs = changed(THEIRS, id=7)
        self.assertEqual(compare(theirs=[theirs], own_ids=True).differences, [])
        ours = [OURS, changed(OURS, timestamp=11, name="F")]
        theirs = [theirs, changed(theirs, timestamp=11, name="F")]
        self.assertEqual(compare(ours, theirs, own_ids=True).count, 1)

    def test_every_payload_value_is_compared(self):
        for payload in ({**OURS["payload"], "n": 2}, {**OURS["payload"], "n": "1"}, {**OURS["payload"], "n": True},
                        {**OURS["payload"], "text": "abd"}, {**OURS["payload"], "list": [1]},
                        {**OURS["payload"], "list": [1, 3]}, {**OURS["payload"], "object": {"x": 1.25}},
                        {**OURS["payload"], "object": {"y": 1.5}}, {**OURS["payload"], "n": None}, {}):
            self.assertGreater(compare(theirs=[changed(THEIRS, payload=payload)]).count, 0, payload)

    def test_large_integers_are_compared_exactly(self):
        ours, theirs = changed(OURS, payload={"n": 2**24}), changed(THEIRS, payload={"n": 2**24 + 1})
        self.assertEqual(compare([ours], [theirs]).count, 1)

    def test_singles_may_be_shown_as_doubles(self):
        ours, theirs = changed(OURS, payload={"x": 2.6049651e+16}), changed(THEIRS, payload={"x": 26049650960105470})
        self.assertEqual(compare([ours], [theirs]).differences, [])
        theirs = changed(THEIRS, payload={"x": 26049648812621824})  # The next lower number of single precision.
        self.assertEqual(compare([ours], [theirs]).count, 1)

    def test_values_missing_in_the_file_may_be_shown(self):
        ours = changed(OURS, pid=None, tid=None, cpu=None, name="")
        theirs = changed(THEIRS, pid=0, tid=-1, cpu=7, name="EventID(1)")
        self.assertEqual(compare([ours], [theirs]).differences, [])
        for key, value in (("pid", 1), ("tid", 0), ("name", "EventID(2)")):
            self.assertEqual(compare([ours], [changed(theirs, **{key: value})]).count, 1, key)

    def test_documented_names_of_the_runtime_may_be_missing(self):
        ours = changed(OURS, provider="Microsoft-Windows-DotNETRuntime", name="GC/Start")
        theirs = changed(THEIRS, provider="Microsoft-Windows-DotNETRuntime", name="EventID(1)")
        self.assertEqual(compare([ours], [theirs]).differences, [])
        self.assertEqual(compare([ours], [changed(theirs, name="Other")]).count, 1)

    def test_order_of_fields_is_compared(self):
        reordered = dict(reversed(list(THEIRS["payload"].items())))
        self.assertEqual(compare(theirs=[changed(THEIRS, payload=reordered)]).count, 1)

    def test_missing_and_surplus_events_are_seen(self):
        self.assertGreater(compare(theirs=[]).count, 0)
        self.assertGreater(compare(theirs=[THEIRS, THEIRS]).count, 0)

    def test_exchanged_events_are_seen(self):
        ours = [OURS, changed(OURS, timestamp=11, name="F", id=2)]
        theirs = [changed(THEIRS, name="F", id=2), changed(THEIRS, timestamp=11)]
        self.assertGreater(compare(ours, theirs).count, 1)

    def test_file_order_of_our_events_does_not_matter(self):
        ours = [changed(OURS, timestamp=11), OURS]
        theirs = [THEIRS, changed(THEIRS, timestamp=11)]
        self.assertEqual(compare(ours, theirs).differences, [])

    def test_reader_out_of_time_order_is_seen(self):
        ours = [OURS, changed(OURS, timestamp=11)]
        theirs = [changed(THEIRS, timestamp=11), THEIRS]
        self.assertEqual(compare(ours, theirs).count, 1)

    def test_lost_events_exceptions_and_unreadable_payloads_are_seen(self):
        self.assertEqual(compare(totals={"lost": 1}).count, 1)
        self.assertEqual(compare(lost=1).count, 1)
        self.assertEqual(compare(totals={"exception": "FormatException: x\n at y"}).count, 1)
        self.assertEqual(compare(totals={"payloadFailures": 1}).count, 1)

    def test_opcode_is_part_of_the_shown_name(self):
        ours = changed(OURS, name="RequestStart", opcode=1)
        for shown in ("Request/Start", "RequestStart/Start"):
            theirs = changed(THEIRS, name=shown, opcode=1, opcodeName="Start")
            self.assertEqual(compare([ours], [theirs]).differences, [])
        theirs = changed(THEIRS, name="Reques/Start", opcode=1, opcodeName="Start")
        self.assertEqual(compare([ours], [theirs]).count, 1)

    def test_large_numbers_are_strings_of_digits_in_ours(self):
        for number in (2**53 + 1, -2**53 - 1, 2**64 - 1):
            ours, theirs = changed(OURS, payload={"n": str(number)}), changed(THEIRS, payload={"n": number})
            self.assertEqual(compare([ours], [theirs]).differences, [])
            theirs = changed(THEIRS, payload={"n": number + 1})
            self.assertEqual(compare([ours], [theirs]).count, 1)
        ours, theirs = changed(OURS, payload={"n": "7"}), changed(THEIRS, payload={"n": 7})
        self.assertEqual(compare([ours], [theirs]).count, 1)

    def test_empty_object_shown_as_null_is_a_difference_unless_allowed(self):
        ours, theirs = changed(OURS, payload={"o": {}}), changed(THEIRS, payload={"o": None})
        self.assertEqual(compare([ours], [theirs]).count, 1)
        self.assertEqual(compare([ours], [theirs], allowed=["empty"]).differences, [])
        self.assertEqual(compare([changed(OURS, payload={"o": {"x": 1}})], [theirs], allowed=["empty"]).count, 1)

    def test_implied_opcode_is_a_difference_unless_allowed(self):
        ours = changed(OURS, name="Restart")
        theirs = changed(THEIRS, name="Re/Start", opcode=1, opcodeName="Start")
        self.assertEqual(compare([ours], [theirs]).count, 1)
        self.assertEqual(compare([ours], [theirs], allowed=["implied"]).count, 0)

    def test_opcode_of_a_label_is_a_difference_unless_a_log_allows_it(self):
        ours, theirs = changed(OURS, opcode=3, labels={"OpCode": 3}), THEIRS
        for log, allowed, labelled, differences in ((True, ["label"], True, 0), (True, [], True, 1),
                                                    (False, ["label"], True, 1), (True, ["label"], False, 1)):
            result = comparison.Comparison(allowed)
            event = ours if labelled else changed(ours, labels={})
            result.files([event], [theirs], TOTALS, 0, log=log)
            self.assertEqual(result.count, differences, (log, allowed, labelled))

    def test_processes_match_their_events(self):
        def event(name, pid, time, path=None):
            payload = {"Name": path} if path else {}
            return changed(THEIRS, provider="Universal.System", name=name, pid=pid, relativeMs=time, payload=payload)

        shown = [event("ExistingProcess", 1, 0, "/bin/a"), event("ProcessCreate", 2, 3.5, "/bin/b"),
                 event("ProcessExit", 2, 4.5), event("ProcessCreate", 2, 5.5, "/bin/c"), THEIRS]
        right = [{"pid": 1, "image": "/bin/a", "startMs": 0.1, "endMs": 9},
                 {"pid": 2, "image": "/bin/b", "startMs": 3.5, "endMs": 4.5},
                 {"pid": 2, "image": "/bin/c", "startMs": 5.5, "endMs": 9}]

        def differences(processes):
            result = comparison.Comparison()
            result.processes(shown, {"processes": processes})
            return result.count

        self.assertEqual(differences(right), 0)
        for wrong in (right[:2], [right[0], right[2]], right + [right[2]],
                      [right[0], {**right[1], "image": "b"}, right[2]],
                      [right[0], {**right[1], "startMs": 0}, right[2]],
                      [right[0], {**right[1], "endMs": 9}, right[2]]):
            self.assertGreater(differences(wrong), 0, wrong)

    def test_differences_in_a_log_name_tracelog(self):
        result = comparison.Comparison()
        result.files([OURS], [], TOTALS, 0, log=True)
        self.assertTrue(result.differences[0].startswith("TraceLog: "))

    def test_quirks_of_text_are_differences_unless_allowed(self):
        for ours, theirs, quirk in (("\u00e9", "\u00c3\u00a9", "latin1"), ("a\0b", "a", "nul")):
            self.assertEqual(with_text(ours, theirs).count, 1, quirk)
            allowed = with_text(ours, theirs, allowed=[quirk])
            self.assertEqual((allowed.count, allowed.quirks[quirk]), (0, 1), quirk)

    def test_allowed_quirk_does_not_hide_other_text(self):
        self.assertEqual(with_text("\u00e9", "\u00c3\u00aa", allowed=comparison.QUIRKS).count, 1)

    def test_single_may_be_shown_with_fewer_digits_but_not_with_another_value(self):
        self.assertEqual(with_text(0.1, 0.10000000149011612).count, 0)
        self.assertEqual(with_text(0.1, 0.1000000014).count, 1)
        self.assertEqual(with_text(0.1, 0.10000000000000002).count, 1)
        self.assertEqual(with_text(1, 1.0).count, 0)
        self.assertEqual(with_text(1e300, 1.0).count, 1)

    def test_keeps_a_bounded_number_of_differences(self):
        result = compare([OURS] * 50, [changed(THEIRS, name="F")] * 50)
        self.assertEqual((result.count, len(result.differences)), (50, comparison.MAX_SHOWN))
