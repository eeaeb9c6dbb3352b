#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The comparison of counts with bounds finds what is too much and what is missing."""

import unittest

import count_instructions


class Failures(unittest.TestCase):
    def test_counts_within_bounds_pass(self):
        self.assertEqual(count_instructions.failures({"a": 129, "b": 5}, {"a": 100, "b": 10}), [])

    def test_too_many_are_named(self):
        lines = count_instructions.failures({"a": 131}, {"a": 100})
        self.assertEqual(len(lines), 1)
        self.assertIn("a: got 131 instructions", lines[0])

    def test_cases_without_partner_are_named(self):
        lines = count_instructions.failures({"a": 1}, {"b": 1})
        self.assertEqual(lines, ["b: no count", "a: no bound"])


if __name__ == "__main__":
    unittest.main()
