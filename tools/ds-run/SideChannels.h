//===- SideChannels.h - what must not end a training run ------------------===//
#pragma once

namespace ds::run {

/// From here on a closed stdin, stdout or stderr, a pipe that nobody reads, a file that has reached its limit and a
/// terminal that is closed end nothing: writes fail with an error, and SIGHUP is said once on stderr. Descriptors 0 to
/// 2 are open afterwards, so that no file of the run gets one of them and messages with it.
void outliveSideChannels();

} // namespace ds::run
