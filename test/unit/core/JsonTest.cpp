#include "core/Json.h"

#include <gtest/gtest.h>
#include <limits>
#include <nlohmann/json.hpp>

namespace ds {
namespace {

/// The same value twice: ours and nlohmann's, which has the forms that we write.
struct Pair {
  Json ours;
  nlohmann::ordered_json theirs;
};

const Pair pairs[] = {
    {nullptr, nullptr},
    {true, true},
    {-1, -1},
    {std::numeric_limits<uint64_t>::max(), std::numeric_limits<uint64_t>::max()},
    {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::min()},
    {0.0, 0.0},
    {1e-5, 1e-5},
    {0.1, 0.1},
    {1e300, 1e300},
    {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()},
    {"", ""},
    {"a \"b\" \\ \n \x01 \xc3\xa9", "a \"b\" \\ \n \x01 \xc3\xa9"},
    {Json::array(), nlohmann::ordered_json::array()},
    {Json::object(), nlohmann::ordered_json::object()},
    {{1, "two", nullptr}, {1, "two", nullptr}},
    {{"a", 1}, {"a", 1}},                                   // one pair alone is an array of two
    {{{"a", 1}, {"b", {1, 2}}}, {{"a", 1}, {"b", {1, 2}}}}, // pairs are an object
    {{{"a", 1}, {2, 3}}, {{"a", 1}, {2, 3}}},
    {{{"deep", {{"er", {{"empty", Json::array()}}}}}},
     {{"deep", {{"er", {{"empty", nlohmann::ordered_json::array()}}}}}}},
    {std::vector<int64_t>{3, 1}, std::vector<int64_t>{3, 1}},
};

TEST(Json, IsWrittenAsNlohmannWritesIt) {
  for (const Pair &pair : pairs)
    for (int indent : {-1, 0, 1, 4})
      EXPECT_EQ(pair.ours.dump(indent), pair.theirs.dump(indent));
}

TEST(Json, BytesThatAreNoUtf8AreReplaced) { EXPECT_EQ(Json("a\xff").dump(), "\"a\xef\xbf\xbd\""); }

TEST(Json, MembersKeepTheirOrder) {
  Json json;
  json["z"] = 1;
  json["a"].push_back("first");
  json["a"].push_back(2);
  json["z"] = 3;
  json.append({{"m", nullptr}});
  EXPECT_EQ(json.dump(), R"({"z":3,"a":["first",2],"m":null})");
}

} // namespace
} // namespace ds
