import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.util.Base64;

import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

/** For lines of `file TAB rules`: the name that Kafka gives to the subject of the certificate, in base64. */
public class Principals {
    public static void main(String[] arguments) throws Exception {
        for (String line : Files.readAllLines(Path.of(arguments[0]))) {
            String[] parts = line.split("\t", 2);
            String name;
            try (var file = Files.newInputStream(Path.of(parts[0]))) {
                var factory = CertificateFactory.getInstance("X.509");
                var certificate = (X509Certificate) factory.generateCertificate(file);
                String subject = certificate.getSubjectX500Principal().getName();
                name = SslPrincipalMapper.fromRules(parts[1]).getName(subject);
            } catch (SslPrincipalMapper.NoMatchingRule | RuntimeException error) {
                name = "!" + error.getClass().getSimpleName();
            }
            System.out.println(Base64.getEncoder().encodeToString(name.getBytes(StandardCharsets.UTF_8)));
        }
    }
}
