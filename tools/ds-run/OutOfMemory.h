//===- OutOfMemory.h - the sentence where memory has run out --------------===//
#pragma once

namespace ds::run {

/// Says it without allocating.
void sayOutOfMemory() noexcept;

/// From here on, memory that runs out where no exception may be thrown, as within a library's kernel, ends the process
/// with that sentence and code 1. Call once, first of all.
void endWhenOutOfMemory();

} // namespace ds::run
