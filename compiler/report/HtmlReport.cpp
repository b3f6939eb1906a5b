//===- HtmlReport.cpp - the report as a page with pictures ----------------===//
//
// One file that needs nothing else: what the text report says, and for every role and memory space a drawing of a
// step's memory. docs/report.md says how to read it.
//
//===----------------------------------------------------------------------===//
#include "compiler/report/Advice.h"
#include "compiler/report/Counterexample.h"
#include "compiler/report/Facts.h"
#include "compiler/report/Formats.h"
#include "compiler/report/Fragmentation.h"
#include "compiler/report/Html.h"
#include "compiler/report/MemoryFigure.h"
#include "compiler/report/PeakMemory.h"
#include "compiler/report/PipelineStages.h"
#include "compiler/report/Table.h"
#include "compiler/report/Tables.h"
#include "compiler/report/Transfers.h"
#include "compiler/report/WireBytes.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Mesh.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ds::report {
namespace {

using plan::proto::Buffer;
using plan::proto::Plan;
using plan::proto::Role;

constexpr size_t tensorsAtPeak = 40;
constexpr size_t rolesDrawn = 8; // of more, those whose peaks are highest
constexpr int rolesOpen = 4;     // of more, what each holds is folded
constexpr size_t maxTiles = 8000, maxColumns = 960;

std::string subheading(const std::string &text) { return "<h3>" + escaped(text) + "</h3>\n"; }
std::string folded(const std::string &summary, const std::string &html) {
  return "<details><summary>" + escaped(summary) + "</summary>\n" + html + "</details>\n";
}

std::string legendHtml() {
  std::string html =
      "<p>The address of every buffer, and the commands during which it is live, are fixed before training starts. "
      "Time runs from left to right, one instant a command. The upper panel adds up the bytes of the buffers live at "
      "each instant. The lower panel shows where these buffers lie in the arena, on the same scale of bytes. Buffers "
      "side by side may use the same addresses, one after the other. Colours say what bytes are for:</p>\n";
  std::string rows;
  for (Buffer::Category category : stackOrder)
    rows += "<tr><td>" + swatch(styleOf(category)) + std::string(categoryName(category)) + "</td><td class=\"dim\">" +
            std::string(categoryMeaning(category)) + "</td></tr>\n";
  return html + "<table>\n" + rows + "<tr><td>" + swatch("padding") +
         "free</td><td class=\"dim\">in the arena, but no buffer is live there at that instant; at the peak this is "
         "fragmentation: alignment behind live buffers, slots of messages, idle slots of micro-batches that are not in "
         "flight, and gaps that are needed at other times</td></tr>\n</table>\n";
}

/// "width:12.3%"
std::string widthOf(uint64_t part, uint64_t whole) {
  const uint64_t tenths = uint64_t(static_cast<unsigned __int128>(part) * 1000 / std::max<uint64_t>(whole, 1));
  return "width:" + std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + "%";
}

/// A bar of the bytes at the peak, by category, as a share of `whole`.
std::string barHtml(const SpaceMemory &memory, uint64_t whole) {
  std::string html = "<div class=\"bar\">";
  for (Buffer::Category category : stackOrder)
    if (const uint64_t bytes = memory.atPeak[size_t(category)]; bytes > 0)
      html += "<div class=\"" + styleOf(category) + "\" style=\"" + widthOf(bytes, whole) + "\" title=\"" +
              std::string(categoryName(category)) + ": " + grouped(bytes) + " bytes\"></div>";
  return html + "</div>";
}

/// The memory of one space of one role.
struct Place {
  const Role *role;
  std::string space;
  SpaceMemory memory;
};

std::vector<Place> placesOf(const Plan &plan) {
  std::vector<Place> places;
  for (const Role &role : plan.roles())
    for (const char *space : {"device", "host", "nvme"})
      if (SpaceMemory memory = measure(role, space); memory.arenaBytes > 0)
        places.push_back({&role, space, std::move(memory)});
  return places;
}

/// All roles side by side, where there are several.
std::string rolesHtml(Contents &contents, const std::vector<Place> &places) {
  uint64_t most = 0;
  for (const Place &place : places)
    most = std::max(most, place.memory.arenaBytes);
  std::string html =
      "<table class=\"bars\">\n<tr><th>ranks</th><th>role</th>"
      "<th>space</th><th class=\"right\">arena</th><th class=\"right\">live at the peak</th><th></th></tr>\n";
  for (const Place &place : places)
    html += "<tr><td>" + rankRanges(*place.role) + "</td><td>" + escaped(place.role->name()) + "</td><td>" +
            place.space + "</td><td class=\"right\">" + grouped(place.memory.arenaBytes) + "</td><td class=\"right\">" +
            grouped(place.memory.peakLiveBytes) + "</td><td>" + barHtml(place.memory, most) + "</td></tr>\n";
  return contents.heading("Memory of every role") + scrolling(html + "</table>\n");
}

std::string phasesHtml(const Plan &plan, const Place &place) {
  std::string html =
      "<table class=\"bars\">\n<tr><th>phase</th><th class=\"right\">most live bytes</th><th></th></tr>\n";
  for (const Phase &phase : phasesOf(plan, *place.role, place.memory))
    html += std::string("<tr><td>") + phase.name + "</td><td class=\"right\">" + grouped(phase.liveBytes) +
            "</td><td><div class=\"bar k4\" style=\"" + widthOf(phase.liveBytes, place.memory.arenaBytes) +
            "\"></div></td></tr>\n";
  return scrolling(html + "</table>\n");
}

std::string peakHtml(const Plan &plan, const Place &place) {
  const SpaceMemory &memory = place.memory;
  std::string html =
      "<div class=\"side\"><div>" + subheading("Bytes") +
      htmlTable(memoryTable(*place.role, memory, fragmentationAtPeak(plan, *place.role, place.space, memory))) +
      "</div><div>" + subheading("Phases") + phasesHtml(plan, place) + "</div></div>\n";
  if (memory.peak) {
    const plan::proto::Program &program = place.role->programs(memory.peak->program);
    html += "<p>The peak is at " +
            escaped(instantText(plan, *place.role, program, memory.peak->call, memory.peak->command)) + ", in " +
            escaped(program.name()) + ".</p>\n";
  }
  html += subheading("Live at the peak") + htmlTable(largestTable(*place.role, memory, tensorsAtPeak));
  if (memory.alive.size() > tensorsAtPeak) {
    uint64_t rest = 0;
    for (size_t i = tensorsAtPeak; i < memory.alive.size(); ++i)
      rest += memory.alive[i].bytes;
    html += "<p>and " + plural(memory.alive.size() - tensorsAtPeak, "smaller buffer") + " of " + grouped(rest) +
            " bytes together</p>\n";
  }
  return html;
}

/// `figures`: how many places are drawn; the more, the coarser each, so that the page stays small.
std::string placeHtml(const Plan &plan, const Place &place, size_t figures) {
  const Role &role = *place.role;
  std::string html;
  for (int program = 0; program < role.programs_size(); ++program) {
    const bool step = role.programs(program).name() == "step";
    const size_t share = std::max<size_t>(figures / 2, 1) * (step ? 1 : 4);
    const std::string figure =
        memoryFigure(plan, role, program, place.space, {std::max<size_t>(maxColumns / share, 120), maxTiles / share});
    html += step ? figure : folded("The same for " + role.programs(program).name(), figure);
  }
  return html + peakHtml(plan, place);
}

/// The places whose pictures are drawn: all of a few, of many those with the highest peaks.
std::set<size_t> drawnPlaces(const std::vector<Place> &places, bool all) {
  std::vector<size_t> order(places.size());
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return places[a].memory.peakLiveBytes > places[b].memory.peakLiveBytes; });
  if (!all && order.size() > rolesDrawn)
    order.resize(rolesDrawn);
  return {order.begin(), order.end()};
}

std::string memoryHtml(Contents &contents, const Plan &plan, bool allRanks) {
  const std::vector<Place> places = placesOf(plan);
  const std::set<size_t> drawn = drawnPlaces(places, allRanks);
  std::string html = places.size() > 1 ? rolesHtml(contents, places) : "";
  if (drawn.size() < places.size())
    html += "<p>Drawn below are the " + grouped(drawn.size()) +
            " roles with the highest peaks; <code>--all-ranks</code> draws all.</p>\n";
  for (const size_t i : drawn) {
    const Role &role = *places[i].role;
    const std::string title =
        "Rank " + rankRanges(role) + " (role " + role.name() + "), " + places[i].space + " memory";
    html += contents.folded(title, placeHtml(plan, places[i], drawn.size()), i == *drawn.begin());
  }
  return html;
}

/// What a rank holds of the training state, and hands to the others.
std::string sharingHtml(Contents &contents, const Plan &plan) {
  std::string html = contents.heading("Ownership and wire bytes");
  for (const Role &role : plan.roles()) {
    std::string one = htmlTable(stateTable(plan, role));
    const Table buckets = bucketTable(plan, role);
    if (buckets.rows().size() > 1)
      one +=
          folded(plural(buckets.rows().size() - 1, "bucket") + " over " + plural(plan::batchRanks(plan), "data rank"),
                 htmlTable(buckets));
    const WireBytes wire = wireBytesPerStep(plan, role, role.ranks_size() > 0 ? role.ranks(0) : 0);
    if (wire.sum() > 0)
      one += htmlTable(wireTable(wire));
    const std::string title = "Rank " + rankRanges(role) + " (role " + role.name() + ")";
    html += plan.roles_size() > rolesOpen ? folded(title, one) : subheading(title) + one;
  }
  return html;
}

std::string headHtml(const Plan &plan) {
  std::string html = "<h1>" + escaped(plan.model()) + "</h1>\n<p class=\"dim\">compiled by ds-opt " +
                     escaped(plan.compiler_revision()) + " for machine " + escaped(plan.machine().name()) + " (" +
                     escaped(plan.machine().device()) + ")</p>\n<table>\n";
  for (const auto &[label, sentence] : headLines(plan))
    html += "<tr><th>" + label + "</th><td>" + escaped(sentence) + "</td></tr>\n";
  html += "</table>\n";
  const std::vector<std::string> advice = adviceOf(plan);
  for (const std::string &sentence : advice)
    html +=
        (sentence == advice.front() ? "<p>What would help:</p>\n<ul>\n<li>" : "<li>") + escaped(sentence) + "</li>\n";
  return html + (advice.empty() ? "" : "</ul>\n");
}

std::string stagesHtml(Contents &contents, const Plan &plan) {
  return hasStages(plan) ? contents.heading("Pipeline stages, a micro-batch") + htmlTable(stageTable(plan)) : "";
}

/// What of the transfers is exposed, and each of them.
std::string transfersHtml(Contents &contents, const Plan &plan) {
  const Table exposure = exposureTable(plan);
  if (exposure.rows().size() == 1)
    return "";
  std::string html =
      contents.heading("Transfers between device and host memory, a step on the simulated clock") + htmlTable(exposure);
  for (const Role &role : plan.roles())
    if (const auto times = transferTimes(plan, role))
      html += subheading("Rank " + rankRanges(role)) + transferFigure(plan, role) +
              folded("Every transfer of rank " + rankRanges(role), htmlTable(transferTable(*times)));
  return html;
}

std::string movementHtml(Contents &contents, const Plan &plan) {
  const Table moved = movementTable(plan);
  return moved.rows().size() == 1 ? ""
                                  : contents.heading("B" + std::string(movementTitle.substr(1))) + htmlTable(moved);
}

std::string configHtml(Contents &contents, const Plan &plan) {
  return contents.heading("Configuration: " + plural(uint64_t(plan.config_size()), "key") + " written") +
         (plan.config_size() > 0 ? htmlTable(configTable(plan)) : "") +
         folded("With every default", "<pre>" + escaped(plan.config_json()) + "</pre>\n");
}

} // namespace

std::string htmlReport(const Plan &plan, bool allRanks, const std::optional<Counterexample> &refused) {
  Contents contents;
  std::string body = stagesHtml(contents, plan);
  body += transfersHtml(contents, plan);
  body += movementHtml(contents, plan);
  body += folded("How to read the pictures", legendHtml());
  body += memoryHtml(contents, plan, allRanks);
  body += sharingHtml(contents, plan);
  body += contents.heading("Parameters") + htmlTable(parameterTable(plan)) +
          folded("Every parameter", htmlTable(parameterList(plan)));
  body += configHtml(contents, plan);
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
         escaped(plan.model()) + " - DeepStatic plan</title>\n<style>" + std::string(pageStyle) +
         "</style>\n</head>\n<body>\n" + headHtml(plan) + contents.html() +
         (refused ? counterexampleHtml(plan, *refused) : "") + body + "<script>" + std::string(pageScript) +
         "</script>\n</body>\n</html>\n";
}

} // namespace ds::report
