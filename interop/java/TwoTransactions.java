import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.serialization.StringSerializer;

/** Two transactions of one record; the second is repeated until it is committed. The first waits for a file. */
public class TwoTransactions {
    public static void main(String[] arguments) throws Exception {
        String topic = arguments[1];
        Path folder = Path.of(arguments[2]);
        Properties settings = new Properties();
        settings.put(ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
        settings.put(ProducerConfig.TRANSACTIONAL_ID_CONFIG, "two");
        settings.put(ProducerConfig.DELIVERY_TIMEOUT_MS_CONFIG, 3_000);
        settings.put(ProducerConfig.REQUEST_TIMEOUT_MS_CONFIG, 2_500);
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(topic, "first")).get();
            Files.createFile(folder.resolve("written"));
            while (!Files.exists(folder.resolve("commit"))) {
                Thread.sleep(20);
            }
            producer.commitTransaction();
            String refusals = "";
            for (boolean isCommitted = false; !isCommitted; ) {
                producer.beginTransaction();
                try {
                    producer.send(new ProducerRecord<>(topic, "second"));
                    producer.commitTransaction();
                    isCommitted = true;
                } catch (KafkaException refused) {
                    refusals += refused.getClass().getSimpleName() + "\n";
                    producer.abortTransaction();
                }
            }
            Files.writeString(folder.resolve("refusals"), refusals);
        }
    }
}
