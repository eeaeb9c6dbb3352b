// SPDX-License-Identifier: Apache-2.0
// Empty: its target holds the headers that all test programs read, parsed once.
