import java.util.Properties;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Writes one record after the other with default settings, each after the acknowledgement of the last.
 *
 * <p>Arguments: bootstrap servers, topic, seconds. Prints "writing" after the first second, and at the end the longest
 * time between two acknowledgements after that line, in milliseconds.
 */
public class OneByOne {
    private static final long FIRST_NANOS = 1_000_000_000L;

    public static void main(String[] arguments) throws InterruptedException {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("key.serializer", StringSerializer.class.getName());
        settings.put("value.serializer", StringSerializer.class.getName());
        String value = "x".repeat(100);
        long watchedNanos = Long.parseLong(arguments[2]) * 1_000_000_000L;
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings)) {
            long began = acknowledged(producer, arguments[1], value);
            long last = began;
            long longest = 0;
            boolean isWatching = false;
            while (last - began < FIRST_NANOS + watchedNanos) {
                long now = acknowledged(producer, arguments[1], value);
                if (isWatching) {
                    longest = Math.max(longest, now - last);
                } else if (now - began > FIRST_NANOS) {
                    isWatching = true;
                    System.out.println("writing");
                }
                last = now;
            }
            System.out.println(longest / 1e6);
        }
    }

    /** Writes a record, again if it fails, until one is acknowledged; returns when that was. */
    private static long acknowledged(KafkaProducer<String, String> producer, String topic, String value)
            throws InterruptedException {
        while (true) {
            try {
                producer.send(new ProducerRecord<>(topic, value)).get();
                return System.nanoTime();
            } catch (ExecutionException failed) {
                // Not acknowledged: the next record may be.
            }
        }
    }
}
