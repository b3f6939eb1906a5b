//===- HjsonTest.cpp - the reader, against what hjson-py 3.1 reads --------===//
#include "compiler/config/Hjson.h"

#include "core/Error.h"

#include <gtest/gtest.h>

namespace ds::config {
namespace {

std::string read(const std::string &text) { return toJson(parseHjson(text, "f")); }

std::string failure(const std::string &text) {
  try {
    return "accepted: " + read(text);
  } catch (const Error &error) {
    return error.what();
  }
}

TEST(Hjson, ReadsJson) {
  EXPECT_EQ(read(R"({"a": [1, -2.5, 1e3, true, false, null, "x\n\u00e9\ud83d\ude00"], "b": {}})"),
            "{\"a\": [1, -2.5, 1000.0, true, false, null, \"x\\n\u00e9\U0001F600\"], \"b\": {}}");
  EXPECT_EQ(read(""), "{}");
  EXPECT_EQ(read("\xef\xbb\xbf{}"), "{}");
}

TEST(Hjson, Comments) {
  EXPECT_EQ(read("# one\n{ // two\n a: 1 # three\n /* four\n */ b: 2 /* five */ c: 3 // six\n} // seven"),
            R"({"a": 1, "b": 2, "c": 3})");
}

TEST(Hjson, CommasAreOptional) {
  EXPECT_EQ(read("{a: 1,\n b: [1\n2, 3,],}"), R"({"a": 1, "b": [1, 2, 3]})");
  EXPECT_EQ(read("a: 1\nb: 2"), R"({"a": 1, "b": 2})"); // the outer braces, too
}

TEST(Hjson, UnquotedStringsRunToTheEndOfTheLine) {
  EXPECT_EQ(read("{type: Adam W # no comment, }\n}"), R"({"type": "Adam W # no comment, }"})");
  EXPECT_EQ(read("{a: true story\n b: 1x\n c: 05\n d: -\n e: .5\n}"),
            R"({"a": "true story", "b": "1x", "c": "05", "d": "-", "e": ".5"})");
  EXPECT_EQ(read("{a: 5 # five\n b: true // yes\n c: null, d: 1e-3}"), R"({"a": 5, "b": true, "c": null, "d": 0.001})");
}

// An unquoted string would take the closing bracket along, and the message would be of that.
TEST(Hjson, NumbersThatJsonDoesNotHave) {
  for (const char *word : {"NaN", "-Infinity", "01", "+1", "0x10", "-.5", "1."}) {
    const std::string sentence = "f:2: key \"lr\" is " + std::string(word) +
                                 ", which is no number of JSON; write a decimal number such as 10 or 1e-5, or a string "
                                 "in quotes";
    EXPECT_EQ(failure("{\n\"lr\": " + std::string(word) + "}"), sentence);
    EXPECT_EQ(failure("{\n\"lr\": [1, " + std::string(word) + "], b: 1}"), sentence);
  }
}

TEST(Hjson, QuotedStrings) {
  EXPECT_EQ(read(R"({'a b': 'it"s', "c": "it's \"\\\/\b\f\t"})"), R"({"a b": "it\"s", "c": "it's \"\\/\b\f\t"})");
}

TEST(Hjson, MultilineStrings) {
  EXPECT_EQ(read("{\n  a: '''\n     first\n     second\n      third\n     '''\n}"),
            R"({"a": "first\nsecond\n third"})");
  EXPECT_EQ(read("{a: '''one line'''}"), R"({"a": "one line"})");
}

TEST(Hjson, KeepsNumbersWhole) {
  EXPECT_EQ(read("{a: 9223372036854775807, b: 9223372036854775808}"),
            R"({"a": 9223372036854775807, "b": 9.223372036854776e+18})");
}

TEST(Hjson, LinesAreCounted) {
  const Node root = parseHjson("{\n a: 1\n\n b: /* x\n */ 2\r\n}", "f");
  EXPECT_EQ(root.members[0].value.line, 2);
  EXPECT_EQ(root.members[1].value.line, 5);
}

TEST(Hjson, DuplicateKeysNameBothLines) {
  EXPECT_EQ(failure("{\n\"a\": 1,\n\"b\": 2,\n\"a\": 3}"),
            "f:4: key \"a\" stands twice in one object, first on line 2; remove one of them");
  EXPECT_EQ(read("{a: {a: {a: 1}}}"), R"({"a": {"a": {"a": 1}}})"); // in different objects is fine
}

TEST(Hjson, WhatIsNeverClosed) {
  EXPECT_EQ(failure("{\na: {b: 1"), "f:2: the object that begins here is never closed with '}'; an unquoted string "
                                    "takes the rest of its line, brackets and commas included");
  EXPECT_EQ(failure("{a: [1, 2"), "f:1: the list that begins here is never closed with ']'");
  EXPECT_EQ(failure("{a: \"x\n\"}"), "f:1: the string that begins here is never closed on its line");
  EXPECT_EQ(failure("{a: '''x"), "f:1: the text that begins here is never closed with '''");
  EXPECT_EQ(failure("{/* a"), "f:1: the comment that begins here is never closed with */");
}

TEST(Hjson, WhatStandsInTheWrongPlace) {
  EXPECT_EQ(failure("[1]"), "f:1: the top level is a list; it must be an object of keys and values");
  EXPECT_EQ(failure("{} x"), "f:1: there is more text after the closing '}' of the configuration");
  EXPECT_EQ(failure("{a 1}"), "f:1: key \"a\" is not followed by ':'");
  EXPECT_EQ(failure("{\"a\\nb\" 1}"), "f:1: key \"a\\nb\" is not followed by ':'"); // on one line
  EXPECT_EQ(failure("{a: , b: 1}"), "f:1: ',' stands where a value must stand");
  EXPECT_EQ(failure("{a: 1,, b: 1}"), "f:1: ',' stands where a key must stand");
  EXPECT_EQ(failure("{a:"), "f:1: the text ends where a value must stand");
  EXPECT_EQ(failure("}"), "f:1: '}' stands where a key must stand");
}

TEST(Hjson, WhatStringsMustNotHold) {
  EXPECT_EQ(failure(R"({a: "\x"})"),
            "f:1: a string holds an escape that JSON does not know; write a backslash as \\\\");
  EXPECT_EQ(failure(R"({a: "\ud800"})"), "f:1: a string holds half of a surrogate pair");
  EXPECT_EQ(failure(R"({a: "\u12"})"), "f:1: \\u is not followed by four hexadecimal digits");
  EXPECT_EQ(failure("{a: \"\x01\"}"), "f:1: a control character stands in a string; write it as \\u00..");
  EXPECT_EQ(failure("{a: \"\xc0\x80\"}"), "f: byte 5 is not UTF-8 text");
  EXPECT_EQ(failure("{a: \"\xed\xa0\x80\"}"), "f: byte 5 is not UTF-8 text");
  EXPECT_EQ(failure("{a: 1e999}"), "f:1: the number 1e999 does not fit into 64 bits");
}

TEST(Hjson, Limits) {
  const auto nested = [](int depth) {
    return "{a:" + std::string(size_t(depth), '[') + std::string(size_t(depth), ']') + "}";
  };
  EXPECT_EQ(read(nested(63)).size(), nested(63).size() + 3);
  EXPECT_EQ(failure(nested(64)), "f:1: values are nested deeper than 64 levels");
  EXPECT_EQ(failure(std::string(200000, '[')).substr(0, 4), "f:1:");
  EXPECT_EQ(failure(std::string(hjsonSizeLimit + 1, ' ')), "f: has 1048577 bytes; a configuration has at most 1048576");
  EXPECT_EQ(read(std::string(hjsonSizeLimit, ' ')), "{}");
}

TEST(Hjson, OneValue) {
  EXPECT_EQ(toJson(parseHjsonValue(" 3 ", "x")), "3");
  EXPECT_EQ(toJson(parseHjsonValue("AdamW", "x")), "\"AdamW\"");
  EXPECT_EQ(toJson(parseHjsonValue("{a: [1]}", "x")), "{\"a\": [1]}");
  EXPECT_THROW(parseHjsonValue("[1] 2", "x"), Error);
}

} // namespace
} // namespace ds::config
