//===- TransferFigure.cpp - when queues are busy in a step, as a drawing ----===//
#include "compiler/report/Facts.h"
#include "compiler/report/Html.h"
#include "compiler/report/Transfers.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/run/CommandName.h"
#include "runtime/plan/run/StepClock.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ds::report {
namespace {

using plan::TimedCommand;
using plan::proto::Plan;
using plan::proto::Role;

// Pixels.
constexpr double left = 90, width = 960, right = 20, rowHeight = 30, barHeight = 22;

/// One command, or several of which none is seen alone, side by side.
struct Bar {
  double x = 0, width = 0;
  const TimedCommand *longest = nullptr;
  size_t commands = 1;
};

std::string number(double pixels) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f", pixels);
  return text.data();
}

/// Bars that begin within a pixel are one, named after the longest, so a queue has no more bars than pixels.
std::vector<Bar> barsOf(const std::vector<TimedCommand> &commands, uint32_t queue, double pixelsPerSecond) {
  std::vector<Bar> bars;
  for (const TimedCommand &timed : commands) {
    if (timed.command->queue() != queue || timed.end == timed.start)
      continue;
    const Bar bar{left + timed.start * pixelsPerSecond, (timed.end - timed.start) * pixelsPerSecond, &timed};
    if (bars.empty() || bar.x - bars.back().x >= 1) {
      bars.push_back(bar);
      continue;
    }
    Bar &before = bars.back();
    before.width = bar.x + bar.width - before.x;
    ++before.commands;
    if (bar.longest->end - bar.longest->start > before.longest->end - before.longest->start)
      before.longest = bar.longest;
  }
  return bars;
}

std::string titleOf(const Plan &plan, const Role &role, const Bar &bar) {
  const TimedCommand &timed = *bar.longest;
  const auto moved = transferOf(role, *timed.command);
  const std::string name =
      moved ? moved->name
            : plan::commandName(plan, role, stepOf(role).calls(timed.call).routine(), uint32_t(timed.index));
  return name + (bar.commands > 1 ? " and " + plural(bar.commands - 1, "command") + " more" : "") + ", from " +
         secondsText(timed.start);
}

std::string rowHtml(const Plan &plan, const Role &role, uint32_t queue, const std::vector<Bar> &bars, double y) {
  const bool computes = role.queues(int(queue)).kind() == plan::proto::Queue::COMPUTE;
  std::string html = "<text class=\"end\" x=\"" + number(left - 8) + "\" y=\"" + number(y + 15) + "\">" +
                     escaped(role.queues(int(queue)).name()) + "</text>\n";
  for (const Bar &bar : bars)
    html += "<rect x=\"" + number(bar.x) + "\" y=\"" + number(y) + "\" width=\"" + number(bar.width) + "\" height=\"" +
            number(barHeight) + "\" class=\"tile " + (computes ? "k1" : "k6") + "\"><title>" +
            escaped(titleOf(plan, role, bar)) + "</title></rect>\n";
  return html;
}

} // namespace

std::string transferFigure(const Plan &plan, const Role &role) {
  const std::vector<TimedCommand> commands = timeStep(plan, role);
  std::set<uint32_t> queues; // those that compute or copy
  for (const TimedCommand &timed : commands)
    if (const uint32_t queue = timed.command->queue();
        transferOf(role, *timed.command) || role.queues(int(queue)).kind() == plan::proto::Queue::COMPUTE)
      queues.insert(queue);
  const double seconds = plan::lastEnd(commands), height = double(queues.size()) * rowHeight + 20;
  std::string html = "<figure>\n<div class=\"drawing\">\n<svg viewBox=\"0 0 " + number(left + width + right) + " " +
                     number(height) + "\">\n";
  double y = 0;
  for (uint32_t queue : queues) {
    html += rowHtml(plan, role, queue, barsOf(commands, queue, width / seconds), y);
    y += rowHeight;
  }
  return html + "<text class=\"end\" x=\"" + number(left + width) + "\" y=\"" + number(y + 12) + "\">" +
         secondsText(seconds) +
         "</text>\n</svg>\n</div>\n<figcaption>Queues over a step; where compute has a gap, it waits." +
         "</figcaption>\n</figure>\n";
}

} // namespace ds::report
