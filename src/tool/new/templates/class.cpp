#include <iostream>
#include <memory>

#include "processor.hpp"

namespace {

class processor : public kclxx::record_processor {
 public:
  // Once this returns, the batch is complete; kclxx checkpoints at most once every five seconds. An
  // exception stops the worker.
  void process_records(kclxx::record_batch batch, const kclxx::checkpointer&) override {
    for (const kclxx::record& record : batch)
      std::cout << "got " << record.data().size() << " bytes\n";
  }
};

}  // namespace

kclxx::processor_factory make_processor() {
  return [] { return std::make_unique<processor>(); };
}
