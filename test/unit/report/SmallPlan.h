//===- SmallPlan.h - a plan whose bytes one can add up by eye -------------===//
#pragma once

#include "runtime/plan/plan.pb.h"

namespace ds::report {

/// Two micro-batches, both forward before both backward (two slots), and an evaluation:
///
///   buffer   bytes  scope  alive
///   w        1,024  PLAN   always            weights      +0
///   m        1,024  PLAN   always            optimizer    +1024
///   g        1,024  STEP   backward 0 to update 0         +2048
///   x          512  SLOT   forward 0 to backward 1        +3072, 2 slots
///   h        2,048  SLOT   forward 1 to backward 0        +4096, 2 slots
///   scratch  4,096  CALL   backward 1                     +8192
///   e        3,072  CALL   evaluate 0                     +4096
///
///   call            command 0              command 1
///   forward 0       2,560                  4,608
///   forward 1       5,120                  7,168
///   backward 0      8,192                  10,240 = w m g, x twice, h of micro-batch 1, scratch: the peak
///   backward 1      5,632                  7,680
///   update          3,072
///   evaluate 0      5,120
plan::proto::Plan smallPlan();

/// The routines of a role that stands at another coordinate of axis pipe than stage 0 say no stage.
void forgetStages(plan::proto::Role &role);

} // namespace ds::report
