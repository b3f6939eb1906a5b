//===- DiffReport.cpp - what `ds-opt diff` prints -------------------------===//
#include "compiler/report/Compare.h"
#include "compiler/report/Facts.h"
#include "compiler/report/Table.h"
#include "core/Error.h"
#include "core/Json.h"
#include "runtime/plan/plan.pb.h"

#include <cstddef>
#include <string>
#include <vector>

namespace ds::report {
namespace {

constexpr size_t maxLinesShown = 40; // of a section

/// The same plan gives the same bytes (runtime/plan/FORMAT.md).
bool sameBytes(const plan::proto::Plan &a, const plan::proto::Plan &b) {
  return a.SerializeAsString() == b.SerializeAsString();
}

std::string nothingChanged(bool same) {
  return same ? "nothing differs: the plans are the same in every field\n"
              : "no decision differs: configuration, ownership, bytes, wire bytes, collectives, numerics and counts of "
                "commands are the same; the plans differ in single commands or addresses\n";
}

std::string diffText(const std::vector<Change> &changes) {
  std::string page;
  for (size_t begin = 0; begin < changes.size();) {
    size_t end = begin;
    while (end < changes.size() && changes[end].section == changes[begin].section)
      ++end;
    page += "\n" + changes[begin].section + ": " + plural(end - begin, "difference") + "\n";
    Table table({"", "a", "b"}, {false, true, true});
    for (size_t i = begin; i < end && i < begin + maxLinesShown; ++i)
      table.add({changes[i].what, changes[i].before, changes[i].after});
    table.print(page);
    if (end - begin > maxLinesShown)
      page += "  ... and " + grouped(end - begin - maxLinesShown) + " more; --format json has all\n";
    begin = end;
  }
  return page;
}

} // namespace

std::string diffReport(const plan::proto::Plan &a, const std::string &nameA, const plan::proto::Plan &b,
                       const std::string &nameB, Format format) {
  const std::vector<Change> changes = compare(a, b);
  const bool same = changes.empty() && sameBytes(a, b);
  if (format == Format::Text)
    return a.model() + ": a is " + nameA + ", b is " + nameB + "\n" +
           (changes.empty() ? nothingChanged(same) : diffText(changes));
  if (format != Format::Json)
    throw Error("--format: diff writes text and json", "--format json");
  Json result = {{"format", 1}, {"model", a.model()}, {"a", nameA},
                 {"b", nameB},  {"equal", same},      {"changes", Json::array()}};
  for (const Change &change : changes)
    result["changes"].push_back(
        {{"section", change.section}, {"what", change.what}, {"a", change.before}, {"b", change.after}});
  return result.dump(1) + "\n";
}

} // namespace ds::report
