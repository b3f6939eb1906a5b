//===- Transfers.h - what a step copies between memories, and when ---------===//
#pragma once

#include "compiler/report/Table.h"
#include "compiler/report/movement/MovedBytes.h"
#include "compiler/report/movement/Transfer.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/run/StepClock.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ds::report {

/// What the machine says of the link that a transfer takes, or nullptr.
const plan::proto::Link *linkOf(const plan::proto::Plan &plan, Transfer::Direction direction);
const plan::proto::Link *linkOf(const plan::proto::Machine &machine, Transfer::Direction direction);

/// One transfer in one run of the program `step`.
struct TimedTransfer {
  Transfer moved;
  uint64_t microbatch = 0;
  double start = 0, end = 0; // seconds from the start of the step
  double latestEnd = 0;      // with which the step is no longer
  double bytesPerSecond() const { return end > start ? double(moved.bytes) / (end - start) : 0; }
};

/// A step of one rank of a role on a simulated clock, in seconds.
struct TransferTimes {
  std::vector<TimedTransfer> transfers; // as they start
  double alone = 0;                     // all of them, one after another
  double compute = 0;                   // the commands of queues for compute, one after another
  double step = 0;
  double stepWithout = 0; // if transfers took no time

  double exposed() const { return step - stepWithout; }
  double hidden() const { return alone > 0 ? 1 - exposed() / alone : 1; } // a share of `alone`
};

/// The link that the plan's transfers use and its machine does not name, "device-host" or "host-nvme"; "": there is
/// none.
std::string unknownLink(const plan::proto::Plan &plan);

/// Of a role that has transfers, in a plan that knows all links. Transfers take their link's time, all else takes the
/// cost model's (core/CostModel.h).
std::optional<TransferTimes> transferTimes(const plan::proto::Plan &plan, const plan::proto::Role &role);

/// The program `step` of any role with these times, in a plan that knows all links.
std::vector<plan::TimedCommand> timeStep(const plan::proto::Plan &plan, const plan::proto::Role &role);

/// The least that is exposed if a role's least bytes move both ways at once beside a step without transfers, in
/// seconds. Of a plan that knows the link device-host.
double leastExposed(const plan::proto::Plan &plan, const plan::proto::Role &role, const MovedBytes &moved);

/// The commands of a step on queues that compute, one after another, by the cost model.
double computeSeconds(const plan::proto::Plan &plan, const plan::proto::Role &role);

/// A line a role of how much of its transfers is exposed; without lines where no times are known.
Table exposureTable(const plan::proto::Plan &plan);
inline constexpr std::string_view movementTitle = "bytes moved between device and host memory in a step, beside the "
                                                  "least that any schedule of its commands could move";
/// A line a role that has any; seconds are "" where they are unknown.
Table movementTable(const plan::proto::Plan &plan);
/// A line a transfer.
Table transferTable(const TransferTimes &times);
/// A drawing of when the queues of a role that compute or copy are busy; of a role with times.
std::string transferFigure(const plan::proto::Plan &plan, const plan::proto::Role &role); // TransferFigure.cpp

} // namespace ds::report
