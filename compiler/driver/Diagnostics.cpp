//===- Diagnostics.cpp - MLIR's diagnostics as one ds::Error ----------------===//
#include "compiler/driver/Diagnostics.h"

#include "compiler/driver/Fault.h"
#include "core/Error.h"
#include "dialects/Train/LocationName.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace ds::driver;

/// "file:line:column: ", or "node name: ", or nothing.
static std::string placeOf(Location location) {
  if (auto file = dyn_cast<FileLineColLoc>(location))
    return (file.getFilename().getValue() + ":" + llvm::Twine(file.getLine()) + ":" + llvm::Twine(file.getColumn()) +
            ": ")
        .str();
  const std::string name = ds::train::locationName(location);
  return name.empty() ? "" : name + ": ";
}

/// Whether a message is of an op that only the compiler makes: "'plan.send' op reads ...".
static bool isOfOurOps(StringRef message) { return message.starts_with("'dist.") || message.starts_with("'plan."); }

DiagnosticCollector::DiagnosticCollector(MLIRContext &context, std::function<void(const std::string &)> warn)
    : warn_(std::move(warn)), handler_(&context, [this](Diagnostic &diagnostic) {
        std::string text = placeOf(diagnostic.getLocation()) + diagnostic.str();
        for (const Diagnostic &note : diagnostic.getNotes())
          if (!StringRef(note.str()).starts_with("see current operation")) // IR, not an explanation
            text += "\n  note: " + placeOf(note.getLocation()) + note.str();
        if (diagnostic.getSeverity() == DiagnosticSeverity::Error) {
          if (errors_.empty())
            ofOurOps_ = isOfOurOps(diagnostic.str());
          errors_.push_back(std::move(text));
        } else if (warnings_.insert(text).second) { // plans may be made several times
          text = (diagnostic.getSeverity() == DiagnosticSeverity::Remark ? "note: " : "warning: ") + text;
          if (warn_)
            warn_(text);
          else
            llvm::errs() << text << "\n";
        }
        return success();
      }) {}

void DiagnosticCollector::raiseFault(const char *phase) const {
  throw CompilerFault(phase, std::string("the compiler's own program is wrong after ") + phase +
                                 (errors_.empty() ? "" : ": " + errors_.front()));
}

void DiagnosticCollector::raise(const char *phase) const {
  if (ofOurOps_)
    raiseFault(phase);
  throw ds::Error(errors_.empty() ? std::string(phase) + " failed without saying why" : errors_.front());
}
