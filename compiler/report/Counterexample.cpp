//===- Counterexample.cpp - a refused plan as a timeline ------------------===//
//
// A lane for each queue, a column for each command in the order of issue. Only commands near the two places have
// columns; what is left out between them is a gap.
//
//===----------------------------------------------------------------------===//
#include "compiler/report/Counterexample.h"

#include "compiler/report/Html.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/run/CommandName.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace ds::report {
namespace {

using plan::CommandPlace;
using plan::proto::Plan;

constexpr size_t neighbours = 7; // commands that are drawn before and after a place
constexpr int labelWidth = 150, columnWidth = 58, laneHeight = 46, boxHeight = 30; // pixels

struct Issued {
  CommandPlace place;
  uint32_t queue = 0, routine = 0;
};

/// Commands of a role in the order of issue.
std::vector<Issued> issueOrder(const Plan &plan, uint32_t role, const std::string &program) {
  std::vector<Issued> issued;
  for (const plan::proto::Program &one : plan.roles(int(role)).programs()) {
    if (one.name() != program)
      continue;
    for (uint32_t call = 0; call < uint32_t(one.calls_size()); ++call) {
      const uint32_t routine = one.calls(int(call)).routine();
      const auto &commands = plan.roles(int(role)).routines(int(routine)).commands();
      for (uint32_t command = 0; command < uint32_t(commands.size()); ++command)
        issued.push_back({{role, program, call, command}, commands[int(command)].queue(), routine});
    }
  }
  return issued;
}

bool isAt(const Issued &issued, const CommandPlace &place) {
  return issued.place.role == place.role && issued.place.call == place.call && issued.place.command == place.command;
}

/// What is drawn of a role: the commands near its places, and where commands are left out before one of them.
struct Excerpt {
  std::vector<Issued> commands;
  std::set<size_t> gapsBefore; ///< indices of `commands`
};

Excerpt excerptOf(const Plan &plan, uint32_t role, const std::vector<CommandPlace> &places) {
  const std::vector<Issued> issued = issueOrder(plan, role, places[0].program);
  std::set<size_t> shown;
  for (size_t i = 0; i < issued.size(); ++i)
    for (const CommandPlace &place : places)
      if (isAt(issued[i], place))
        for (size_t k = i - std::min(i, neighbours); k <= std::min(i + neighbours, issued.size() - 1); ++k)
          shown.insert(k);
  Excerpt excerpt;
  std::optional<size_t> last;
  for (const size_t i : shown) {
    if (last ? i != *last + 1 : i > 0)
      excerpt.gapsBefore.insert(excerpt.commands.size());
    excerpt.commands.push_back(issued[i]);
    last = i;
  }
  return excerpt;
}

struct Point {
  int x = 0, y = 0;
};

class Drawing {
public:
  Drawing(const Plan &plan, const std::vector<CommandPlace> &places) : plan_(plan), places_(places) {
    std::set<uint32_t> roles;
    for (const CommandPlace &place : places)
      roles.insert(place.role);
    for (const uint32_t role : roles)
      draw(role, excerptOf(plan, role, places));
  }

  std::string svg() const {
    const int width = labelWidth + int(columns_) * columnWidth + 10;
    std::string html =
        "<svg id=\"counterexample\" viewBox=\"0 0 " + std::to_string(width) + " " + std::to_string(height_ + 10) +
        "\" style=\"max-width:" + std::to_string(width) + "px\">\n" +
        "<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" "
        "markerHeight=\"7\" orient=\"auto\"><path d=\"M0,0L8,4L0,8z\" fill=\"#d62728\"/></marker></defs>\n" +
        boxes_;
    if (ends_.size() == 2 && ends_[0] && ends_[1])
      html += "<path id=\"missing\" d=\"M" + std::to_string(ends_[1]->x) + "," + std::to_string(ends_[1]->y) + "L" +
              std::to_string(ends_[0]->x) + "," + std::to_string(ends_[0]->y) +
              "\" stroke=\"#d62728\" stroke-width=\"2\" stroke-dasharray=\"6 4\" fill=\"none\" "
              "marker-end=\"url(#tip)\"><title>missing: nothing orders these two</title></path>\n";
    return html + "</svg>\n";
  }

private:
  void draw(uint32_t role, const Excerpt &excerpt) {
    ends_.resize(places_.size());
    columns_ = std::max(columns_, excerpt.commands.size());
    std::set<uint32_t> queues;
    for (const Issued &one : excerpt.commands)
      queues.insert(one.queue);
    for (const uint32_t queue : queues) {
      const plan::proto::Role &of = plan_.roles(int(role));
      boxes_ += "<text x=\"0\" y=\"" + std::to_string(height_ + 26) + "\">" +
                escaped((plan_.roles_size() > 1 ? of.name() + ": " : "") + of.queues(int(queue)).name()) + "</text>\n";
      for (size_t i = 0; i < excerpt.commands.size(); ++i)
        if (excerpt.commands[i].queue == queue)
          box(excerpt.commands[i], i, excerpt.gapsBefore.contains(i));
      height_ += laneHeight;
    }
  }

  void box(const Issued &issued, size_t column, bool gap) {
    const int x = labelWidth + int(column) * columnWidth, y = height_ + 6;
    size_t which = places_.size();
    for (size_t i = 0; i < places_.size(); ++i)
      if (isAt(issued, places_[i]))
        which = i;
    const bool isPlace = which < places_.size();
    if (isPlace)
      ends_[which] = {x + columnWidth / 2, y + boxHeight / 2};
    const plan::proto::Role &role = plan_.roles(int(issued.place.role));
    const std::string name = plan::commandName(plan_, role, issued.routine, issued.place.command);
    const std::string title = "call " + std::to_string(issued.place.call) + " (routine " +
                              role.routines(int(issued.routine)).name() + "), command " +
                              std::to_string(issued.place.command) + ": " + name;
    boxes_ += std::string("<g class=\"") + (isPlace ? "place" : "command") + "\" data-command=\"" + escaped(title) +
              "\"><rect x=\"" + std::to_string(x) + "\" y=\"" + std::to_string(y) + "\" width=\"" +
              std::to_string(columnWidth - 6) + "\" height=\"" + std::to_string(boxHeight) + "\" rx=\"4\" fill=\"" +
              (isPlace ? "#d6272833" : "#8884") + "\" stroke=\"" + (isPlace ? "#d62728" : "#888") + "\"/><text x=\"" +
              std::to_string(x + 4) + "\" y=\"" + std::to_string(y + 19) + "\">" + escaped(name.substr(0, 7)) +
              "</text><title>" + escaped(title) + "</title></g>\n";
    if (gap)
      boxes_ += "<text x=\"" + std::to_string(x - 12) + "\" y=\"" + std::to_string(y + 19) + "\">…</text>\n";
  }

  const Plan &plan_;
  const std::vector<CommandPlace> &places_;
  std::vector<std::optional<Point>> ends_; // by place
  std::string boxes_;
  size_t columns_ = 0;
  int height_ = 0;
};

} // namespace

std::string counterexampleHtml(const Plan &plan, const Counterexample &counterexample) {
  std::string html = "<h2>Refused by the checker (" + escaped(counterexample.rule) + ")</h2>\n<p>" +
                     escaped(counterexample.sentence) + "</p>\n";
  if (counterexample.places.empty())
    return html;
  return html + "<figure>\n<div class=\"drawing\">\n" + Drawing(plan, counterexample.places).svg() + "</div>\n" +
         "<figcaption>Commands of the queues that this is about, from left to right in the order in which they are "
         "issued; a lane is a queue. " +
         (counterexample.places.size() > 1
              ? "The dashed red arrow is missing in the plan: the command at its end would have to wait for the other."
              : "The command that breaks the rule is red.") +
         "</figcaption>\n</figure>\n";
}

} // namespace ds::report
