// docs/moving.md: what the processor is in Go, with vmware-go-kcl-v2.
package main

import kc "github.com/vmware/vmware-go-kcl-v2/clientlibrary/interfaces"

type processor struct{ totals *totals }

func (p *processor) Initialize(input *kc.InitializationInput) {
	p.totals = newTotals(input.ShardId)
}

func (p *processor) ProcessRecords(input *kc.ProcessRecordsInput) {
	if len(input.Records) == 0 {
		return
	}
	for _, record := range input.Records {
		p.totals.add(record.Data)
	}
	p.totals.write()
	last := input.Records[len(input.Records)-1].SequenceNumber
	_ = input.Checkpointer.Checkpoint(last)
}

func (p *processor) Shutdown(input *kc.ShutdownInput) {
	if input.ShutdownReason == kc.TERMINATE {
		_ = input.Checkpointer.Checkpoint(nil)
	}
}

type totals struct{}

func newTotals(shard string) *totals { return &totals{} }
func (t *totals) add(data []byte)    {}
func (t *totals) write()             {}

var _ kc.IRecordProcessor = (*processor)(nil)

func main() {}
