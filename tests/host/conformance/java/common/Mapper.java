// SPDX-License-Identifier: Apache-2.0
package kclxx.oracle;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;

/** The daemon's own kind of mapper (made with its defaults), which also reports what was skipped. */
public final class Mapper extends ObjectMapper {
    private static final long serialVersionUID = 1;
    private final transient Events events;

    public Mapper(Events events) {
        this.events = events;
    }

    @Override
    public <T> T readValue(String line, Class<T> type) throws JsonProcessingException {
        try {
            return super.readValue(line, type);
        } catch (JsonProcessingException e) {
            events.add("skips", line);
            throw e;
        }
    }
}
