//===- Zoo.cpp - what is known to train -----------------------------------===//
#include "compiler/report/Zoo.h"

#include "compiler/report/Facts.h"
#include "compiler/report/Table.h"
#include "core/Error.h"

#include <array>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace ds::report {
namespace {

using json = nlohmann::ordered_json;

constexpr std::string_view zooJson =
#include "compiler/report/Zoo.inc"
    ;

/// "4e-08", or "refused".
std::string cellText(const json &cell) {
  if (cell.contains("refused"))
    return "refused";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.0e", cell["difference"].get<double>());
  return text.data();
}

} // namespace

std::string zooReport(Format format) {
  if (format == Format::Json)
    return std::string(zooJson);
  if (format != Format::Text)
    throw Error("--format: zoo can write text and json", "--format json");
  const json zoo = json::parse(zooJson);
  std::vector<std::string> head = {"class of transformers", "kind", "--attach-loss"};
  for (const json &form : zoo["forms"])
    head.push_back(form);
  Table table(head, {});
  uint64_t trained = 0;
  for (const json &one : zoo["architectures"]) {
    std::vector<std::string> row = {one["class"], one["kind"], one["attach_loss"]};
    bool any = false;
    for (const json &cell : one["forms"]) {
      row.push_back(cellText(cell));
      any |= !cell.contains("refused");
    }
    trained += any;
    table.add(std::move(row));
  }
  std::string page = "trained beside PyTorch: " + grouped(trained) + " of " +
                     plural(zoo["architectures"].size(), "architecture") + ", in " +
                     plural(zoo["forms"].size(), "form") + " of export\n";
  table.print(page);
  return page + "  A number is the largest relative difference of " + grouped(zoo["steps"].get<uint64_t>()) +
         " losses to PyTorch's. docs/architectures.md says why one is refused; a class that is not here is untried.\n";
}

} // namespace ds::report
